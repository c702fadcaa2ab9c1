"""The rules of leadership, at times that tests choose."""

from datetime import UTC, datetime

from argosy.cluster.leader.lease import Record, claim, record_of, release, seen

WALL = datetime(2026, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)


def record(holder: str = "one", version: str = "1", duration_s: float = 6) -> Record:
    return Record(holder, duration_s, 3, "2026-01-01T00:00:00.000000Z", version)


def test_a_silent_holder_is_waited_for_from_when_it_was_last_heard() -> None:
    first = seen(None, record(), 100)
    assert not first.is_free("two", 105.9)
    assert first.is_free("two", 106)
    assert seen(first, record(), 105).at == 100
    renewed = seen(first, record(version="2"), 105)
    assert not renewed.is_free("two", 110.9)
    assert renewed.is_free("two", 111)


def test_what_was_abandoned_or_is_ones_own_is_free_at_once() -> None:
    assert seen(None, record(holder=""), 100).is_free("two", 100)
    assert seen(None, record(holder="two"), 100).is_free("two", 100)
    assert not seen(None, record(holder="one"), 100).is_free("two", 100)


def test_a_lease_that_says_nothing_is_free() -> None:
    empty = record_of({"metadata": {"resourceVersion": "7"}})
    assert (empty.holder, empty.duration_s, empty.version) == ("", 0, "7")
    assert seen(None, empty, 0).is_free("two", 0)


def test_taking_counts_and_keeping_does_not() -> None:
    now = "2026-05-04T03:02:01.123456Z"
    assert claim(None, "one", 6, WALL) == {
        "holderIdentity": "one", "leaseDurationSeconds": 6, "acquireTime": now, "renewTime": now,
        "leaseTransitions": 0,
    }  # fmt: skip
    retained = claim(record(), "one", 6, WALL)
    assert (retained["acquireTime"], retained["renewTime"], retained["leaseTransitions"]) == (record().acquired, now, 3)
    taken = claim(record(), "two", 6, WALL)
    assert (taken["acquireTime"], taken["leaseTransitions"]) == (now, 4)


def test_what_is_abandoned_has_no_holder_and_lasts_no_time() -> None:
    provided = release(record(), WALL)
    assert (provided["holderIdentity"], provided["leaseDurationSeconds"], provided["leaseTransitions"]) == ("", 1, 3)
