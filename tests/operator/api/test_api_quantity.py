"""Quantities, percentages and durations: what is read, what is written, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.values.quantity import (
    format_duration,
    format_percent,
    format_rate,
    parse_duration,
    parse_percent,
    parse_rate,
    parse_share,
)
from argosy_common.quantity import format_bytes, parse_bytes


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


def test_too_many_decimals_are_named() -> None:
    with pytest.raises(ValueError, match=r"'10\.55%' has too many decimals for this percentage, at most 1"):
        parse_percent("10.55%")
    with pytest.raises(ValueError, match=r"'0\.00001%' has too many decimals for this percentage, at most 4"):
        parse_rate("0.00001%")
    with pytest.raises(ValueError, match=r"'1000\.5%' is no percentage"):
        parse_rate("1000.5%")


def test_a_share_is_at_most_all() -> None:
    assert parse_share("100%") == 1000
    with pytest.raises(ValueError, match="more than"):
        parse_share("100.1%")


@given(st.integers(0, 1_000_000))
def test_a_written_rate_reads_back(millionths: int) -> None:
    assert parse_rate(format_rate(millionths)) == millionths


@pytest.mark.parametrize(("text", "millionths"), [("0.1%", 1000), ("0.05%", 500), ("2%", 20_000), ("0.0001%", 1)])
def test_a_rate_may_be_very_small(text: str, millionths: int) -> None:
    assert parse_rate(text) == millionths
    assert format_rate(millionths) == text


@pytest.mark.parametrize("text", ["10", "0.00001%", "-1%", ".5%", 0.1, None, "101%"])
def test_what_is_no_rate_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"percentage|more than"):
        parse_rate(text)


@given(st.integers(0, 10**12))
def test_a_written_duration_reads_back(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("200ms", 200), ("1s500ms", 1500), ("5m", 300_000), ("1h30m", 5_400_000), ("1m5ms", 60_005)],
)
def test_a_duration_is_in_milliseconds(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds
    assert format_duration(milliseconds) == text


@pytest.mark.parametrize("text", ["", "5", "5 m", "1m1h", "1d", "5us", "1ms1s", "0.5s", 5, None])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)
