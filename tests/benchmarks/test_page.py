"""The page of tables: it has a place for each, which is filled and filled anew."""

import pytest
from benchmarks.page import PAGE, TABLES, markdown, replaced


@pytest.mark.parametrize("name", [name for tables in TABLES.values() for name in tables])
def test_a_table_has_its_place_and_is_written_anew(name: str) -> None:
    once = replaced(PAGE.read_text(), name, markdown(["a"], [["written once"]]))
    twice = replaced(once, name, markdown(["a"], [["written anew"]]))
    assert "| written once |" in once
    assert "| written anew |" in twice
    assert "| written once |" not in twice


def test_a_table_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="0 places for nothing"):
        replaced(PAGE.read_text(), "nothing", "")
