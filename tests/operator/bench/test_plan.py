"""Order and extent of trials."""

import pytest

from argosy.bench.plan import Extent, Level, extent, trials


def test_endpoints_alternate_as_a_b_b_a() -> None:
    keys = list(trials([Level(concurrency=1), Level(concurrency=8)], 2, 4))
    assert [key.endpoint for key in keys] == [0, 1, 1, 0, 0, 1, 1, 0] * 2
    assert [key.level.concurrency for key in keys] == [1] * 8 + [8] * 8
    assert [key.repetition for key in keys] == [0, 0, 1, 1, 2, 2, 3, 3] * 2


def test_three_endpoints_alternate_too() -> None:
    assert [key.endpoint for key in trials([Level(rate=2.0)], 3, 3)] == [0, 1, 2, 2, 1, 0, 0, 1, 2]


def test_all_endpoints_get_the_same_requests_and_repetitions_others() -> None:
    keys = list(trials([Level(concurrency=1), Level(rate=1.0)], 2, 2))
    seeds = {(key.level, key.repetition): {k.seed(7) for k in keys if k.seed(7) == key.seed(7)} for key in keys}
    assert len({key.seed(7) for key in keys}) == len(seeds) == 4
    assert {key.seed(7) for key in keys}.isdisjoint(key.seed(8) for key in keys)


@pytest.mark.parametrize(
    ("level", "requests", "expected"),
    [
        (Level(concurrency=1), 32, Extent(1, 32, 0)),
        (Level(concurrency=8), 32, Extent(8, 32, 7)),
        (Level(concurrency=64), 32, Extent(64, 128, 63)),
        (Level(rate=3.0), 32, Extent(4, 32, 4)),
        (Level(rate=3.0), 2, Extent(1, 2, 1)),
    ],
)
def test_what_is_sent_for_a_level(level: Level, requests: int, expected: Extent) -> None:
    assert extent(level, requests) == expected
