"""Quantities, percentages and durations: what is read, what is written, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.quantity import (
    format_bytes,
    format_duration,
    format_percent,
    parse_bytes,
    parse_duration,
    parse_percent,
    parse_share,
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("16Gi", 16 * 2**30),
        ("1.5Ki", 1536),
        ("500M", 500_000_000),
        ("2k", 2000),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("100m", 1),
        ("1500m", 2),
        (".5", 1),
        ("0", 0),
        (7, 7),
    ],
)
def test_quantities_are_bytes(text: str | int, amount: int) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "1KB", "ten", "-1", "1e3Gi", "9Ei", True, None, 1.5, "1\n"])
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"quantity|negative"):
        parse_bytes(text)


@given(st.integers(0, 2**63 - 1))
def test_a_written_quantity_reads_back(amount: int) -> None:
    assert parse_bytes(format_bytes(amount)) == amount


@pytest.mark.parametrize(("amount", "text"), [(0, "0"), (1000, "1000"), (1024, "1Ki"), (3 * 2**30, "3Gi")])
def test_quantities_are_written_in_the_largest_exact_unit(amount: int, text: str) -> None:
    assert format_bytes(amount) == text


@given(st.integers(0, 9_999_999))
def test_a_written_percentage_reads_back(thousandths: int) -> None:
    assert parse_percent(format_percent(thousandths)) == thousandths


@pytest.mark.parametrize("text", ["10", "10 %", "10.55%", "-1%", 10, None, "%"])
def test_what_is_no_percentage_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="percentage"):
        parse_percent(text)


def test_a_share_is_at_most_the_whole() -> None:
    assert parse_share("100%") == 1000
    with pytest.raises(ValueError, match="more than"):
        parse_share("100.1%")


@given(st.integers(0, 10**9))
def test_a_written_duration_reads_back(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "5", "5 m", "1m1h", "1d", 5, None])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)
