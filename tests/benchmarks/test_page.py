"""Each table of the benchmarks has its page, and is written there."""

import pytest
from benchmarks.page import TABLES, markdown, page_of, replaced


@pytest.mark.parametrize("name", [name for tables in TABLES.values() for name in tables])
def test_a_table_is_written_into_its_page(name: str) -> None:
    first = replaced(page_of(name).read_text(), name, markdown(["a"], [["written first"]]))
    second = replaced(first, name, markdown(["a"], [["written second"]]))
    assert "| written first |" in first
    assert "| written second |" in second
    assert "| written first |" not in second


def test_a_table_without_a_page_is_refused() -> None:
    with pytest.raises(ValueError, match="0 pages have a table nothing"):
        page_of("nothing")
