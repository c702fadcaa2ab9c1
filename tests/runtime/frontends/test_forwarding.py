"""Which headers become parameters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.frontends.forwarding import RESERVED, HeaderForwarding, refusal

HEADERS = [("My-Header", "1"), ("my-other", "2"), ("Accept", "*/*"), ("my-other", "3")]


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("", {}),
        ("^my-", {"My-Header": "1", "my-other": "3"}),
        ("HEADER", {"My-Header": "1"}),
        ("my-(?:header|none)$", {"My-Header": "1"}),
        (".*", {"My-Header": "1", "my-other": "3", "Accept": "*/*"}),
    ],
)
def test_a_pattern_matches_anywhere_in_any_case(pattern: str, chosen: dict[str, str]) -> None:
    assert HeaderForwarding(pattern).of(HEADERS) == chosen
    assert HeaderForwarding(pattern).is_on == bool(pattern)


@pytest.mark.parametrize("header", [*sorted(RESERVED), "triton_enable_empty_final_response", "triton_x"])
def test_reserved_names_are_refused(header: str) -> None:
    message = f"Header '{header}' is reserved for Triton usage and cannot be forwarded."
    assert refusal(["mine", header]) == message
    assert refusal(["mine", header.upper()]) == ""


def test_a_pattern_that_would_make_others_backtrack_without_end_is_matched() -> None:
    forwarding = HeaderForwarding("^(a+)+$")
    assert forwarding.of([("a" * 60_000 + "b", "1")]) == {}


@given(st.text(max_size=20))
def test_any_pattern_is_compiled_or_refused(pattern: str) -> None:
    try:
        forwarding = HeaderForwarding(pattern)
    except ValueError:
        return
    assert forwarding.of(HEADERS).items() <= dict(HEADERS).items()
