"""Pauses double with each failure in a row, and there is no end to how many there may be."""

from argosy.api.values.identity import PoolKey
from argosy.controller.workqueue import RETRY_MOST_S, _Item
from argosy_common.backoff import backoff_s


def test_pauses_double_up_to_the_longest() -> None:
    assert [backoff_s(failures, 0.5, 3.0) for failures in (1, 2, 3, 4, 5, 5000)] == [0.5, 1.0, 2.0, 3.0, 3.0, 3.0]


def test_a_pool_whose_rounds_fail_for_days_is_still_tried() -> None:
    item = _Item(PoolKey("n/p"))
    for _ in range(2000):
        item.failed(ValueError("still not"))
    assert 0 < item.pause_s <= RETRY_MOST_S * 1.2
