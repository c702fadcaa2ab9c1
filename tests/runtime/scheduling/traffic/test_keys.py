"""Sticky keys: the same key goes to the same version, and a change of weights moves as few of them as it can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig.parameters.traffic import Sticky
from argosy_runtime.scheduling.traffic.keys import key_of, version_of

KEYS = [f"user-{number}" for number in range(20_000)]


class Sent:
    """An origin with these headers and fields."""

    protocol = "HTTP"

    def __init__(self, headers: dict[str, str] | None = None, **fields: str) -> None:
        self.headers, self.fields = headers or {}, fields

    def header(self, name: str) -> str | None:
        return self.headers.get(name)

    def field(self, name: str) -> str | None:
        return self.fields.get(name)


def request(origin: Sent | None = None, **parameters: str | int) -> InferRequest:
    made = InferRequest("m", {}, parameters=dict(parameters))
    made.origin = origin
    return made


def test_the_first_key_that_a_request_has_decides():
    sticky = (Sticky(header="x-tenant"), Sticky(parameter="user"))
    assert key_of(request(Sent({"x-tenant": "a"}), user="b"), sticky) == "x-tenant=a"
    assert key_of(request(Sent(), user="b"), sticky) == "user=b"
    assert key_of(request(Sent(user="c")), sticky) == "user=c"
    assert key_of(request(user=7), sticky) == "user=7"
    assert key_of(request(Sent({"x-tenant": ""})), sticky) == "", "an empty value is no key"
    assert key_of(request(), sticky) == ""


@pytest.mark.parametrize("weight", [1_000, 50_000, 500_000])
def test_keys_are_divided_by_weight(weight):
    chosen = [version_of(key, "m", [(1, 1_000_000 - weight), (2, weight)]) for key in KEYS]
    expected = len(KEYS) * weight / 1e6
    # Six standard deviations of a binomial: the hash is fixed, so this holds or not once and for all.
    assert abs(chosen.count(2) - expected) < 6 * (expected * (1 - weight / 1e6)) ** 0.5


shares = st.integers(0, 1_000_000)


@given(shares, shares, st.text(min_size=1))
def test_with_more_weight_a_version_keeps_its_keys(one, other, key):
    less, more = sorted((one, other))
    if version_of(key, "m", [(1, 1_000_000 - less), (2, less)]) == 2:
        assert version_of(key, "m", [(1, 1_000_000 - more), (2, more)]) == 2


def test_keys_move_only_from_a_version_with_less_weight_or_to_one_with_more():
    before = [(1, 800_000), (2, 100_000), (3, 100_000)]
    after = [(1, 700_000), (2, 200_000), (3, 100_000)]
    moves = {(version_of(key, "m", before), version_of(key, "m", after)) for key in KEYS}
    assert moves == {(1, 1), (2, 2), (3, 3), (1, 2), (1, 3), (3, 2)}


def test_a_newer_version_meets_other_keys_first():
    first = {key for key in KEYS if version_of(key, "m", [(1, 950_000), (2, 50_000)]) == 2}
    second = {key for key in KEYS if version_of(key, "m", [(2, 950_000), (3, 50_000)]) == 3}
    assert len(first & second) < len(first) / 2


def test_versions_of_keys_are_the_same_on_every_server():
    """The numbers are of the hash itself: another one would move the users of a fleet that is upgraded in halves."""
    placed = [version_of(f"user-{number}", "fraud", [(1, 500_000), (2, 500_000)]) for number in range(12)]
    assert placed == [
        2,
        2,
        1,
        2,
        1,
        2,
        2,
        1,
        1,
        1,
        1,
        1,
    ]
