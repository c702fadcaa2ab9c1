"""The rules of leadership, at times that tests choose."""

from datetime import UTC, datetime

from argosy.cluster.leader.lease import Record, claim, observed, record_of, release

WALL = datetime(2026, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)


def record(holder: str = "one", version: str = "1", duration_s: float = 6) -> Record:
    return Record(holder, duration_s, 3, "2026-01-01T00:00:00.000000Z", version)


def test_the_duration_counts_from_the_last_observed_change() -> None:
    first = observed(None, record(), 100)
    assert not first.is_free("two", 105.9)
    assert first.is_free("two", 106)
    assert observed(first, record(), 105).at == 100
    renewed = observed(first, record(version="2"), 105)
    assert not renewed.is_free("two", 110.9)
    assert renewed.is_free("two", 111)


def test_a_released_or_own_lease_is_free_at_once() -> None:
    assert observed(None, record(holder=""), 100).is_free("two", 100)
    assert observed(None, record(holder="two"), 100).is_free("two", 100)
    assert not observed(None, record(holder="one"), 100).is_free("two", 100)


def test_an_empty_lease_is_free() -> None:
    empty = record_of({"metadata": {"resourceVersion": "7"}})
    assert (empty.holder, empty.duration_s, empty.version) == ("", 0, "7")
    assert observed(None, empty, 0).is_free("two", 0)


def test_an_acquisition_is_a_transition_and_a_renewal_is_none() -> None:
    now = "2026-05-04T03:02:01.123456Z"
    assert claim(None, "one", 6, WALL) == {
        "holderIdentity": "one", "leaseDurationSeconds": 6, "acquireTime": now, "renewTime": now,
        "leaseTransitions": 0,
    }  # fmt: skip
    renewal = claim(record(), "one", 6, WALL)
    assert (renewal["acquireTime"], renewal["renewTime"], renewal["leaseTransitions"]) == (record().acquired, now, 3)
    taken = claim(record(), "two", 6, WALL)
    assert (taken["acquireTime"], taken["leaseTransitions"]) == (now, 4)


def test_a_released_lease_has_no_holder_and_lasts_a_second() -> None:
    released = release(record(), WALL)
    assert (released["holderIdentity"], released["leaseDurationSeconds"], released["leaseTransitions"]) == ("", 1, 3)
