"""The page of tables: it has a place for each, which is filled and filled anew."""

import pytest
from benchmarks.page import PAGE, TABLES, markdown, replaced


@pytest.mark.parametrize("name", [name for tables in TABLES.values() for name in tables])
def test_a_table_has_its_place_and_is_written_anew(name: str) -> None:
    once = replaced(PAGE.read_text(), name, markdown(["a"], [["1"]]))
    twice = replaced(once, name, markdown(["a"], [["2"]]))
    assert "| 1 |" in once
    assert "| 2 |" in twice
    assert "| 1 |" not in twice


def test_a_table_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="0 places for nothing"):
        replaced(PAGE.read_text(), "nothing", "")
