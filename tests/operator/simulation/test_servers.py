"""A batching server: when batches are formed, what shares the device, and what changes in place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.simulation.curves import affine

from argosy.autoscaling.decision import Allocation
from argosy.simulation.servers.batching import BatchingServer
from argosy.simulation.service import ServiceCurve, interpolated

ONE = Allocation()


def served(arrivals, curve, allocation=ONE, until=1000.0):
    server = BatchingServer(curve, allocation, 0.0, seed=1)
    server.offer(list(arrivals), range(len(arrivals)))
    server.advance(until)
    return server


def steady(seconds, slowdown=(1.0,)):
    return ServiceCurve(tuple(seconds), slowdown, variation=0.0)


def test_what_waits_while_an_instance_executes_is_its_next_batch():
    server = served([0.0, 0.1, 0.2, 0.3], steady([1.0, 1.5, 2.0, 2.5]))
    assert server.served.started == [0.0, 1.0, 1.0, 1.0]
    assert server.served.ended == [1.0, 3.0, 3.0, 3.0]
    assert len(server.served.over) == 2


def test_a_window_is_waited_for_until_the_batch_is_full():
    waits = served([0.0, 0.1, 0.2], steady([1.0, 1.0, 1.0, 1.0]), Allocation(window_s=0.5))
    assert waits.served.started == [0.5] * 3
    full = served([0.0, 0.1, 0.2], steady([1.0, 1.0, 1.0]), Allocation(window_s=0.5))
    assert full.served.started == [0.2] * 3


def test_a_lower_largest_batch_needs_no_restart():
    server = BatchingServer(steady([1.0] * 4), Allocation(), 0.0, seed=1)
    server.change(Allocation(max_batch=2), 0.0)
    server.offer([0.0] * 4, range(4))
    server.advance(10.0)
    assert server.served.ended == [1.0, 1.0, 2.0, 2.0]


def test_instances_share_the_device():
    server = served([0.0, 0.0], steady([1.0], slowdown=(1.0, 1.6)), Allocation(instances=2))
    assert server.served.ended == [1.0, 1.6]


def test_an_instance_more_takes_what_waits_and_one_that_goes_ends_its_work():
    server = BatchingServer(steady([1.0]), Allocation(), 0.0, seed=1)
    server.offer([0.0, 0.0, 0.0], range(3))
    server.advance(0.5)
    server.change(Allocation(instances=2), 0.5)
    server.advance(0.6)
    assert server.served.ended == [1.0, 2.5]  # two execute at once: twice as long, since nothing better was measured
    server.change(Allocation(instances=1), 0.6)
    server.advance(10.0)
    assert server.served.started[2] == 1.0


def test_what_starts_later_is_not_done_yet():
    server = served([0.0, 5.0], steady([1.0]), until=4.0)
    assert (server.served.ended, server.queued) == ([1.0], 1)
    assert server.unfinished(0.4) == pytest.approx(0.6)


@given(
    gaps=st.lists(st.floats(0, 2), min_size=1, max_size=60),
    cuts=st.lists(st.floats(0, 60), max_size=8),
    instances=st.integers(1, 3),
    window=st.sampled_from([None, 0.2, 1.0]),
)
def test_advancing_in_steps_changes_nothing(gaps, cuts, instances, window):
    arrivals, at = [], 0.0
    for gap in gaps:
        at += gap
        arrivals.append(at)
    curve, allocation = affine(0.3, 0.2, 4, (1.0, 1.5)), Allocation(1, instances, window)
    once = served(arrivals, curve, allocation)
    pieces = BatchingServer(curve, allocation, 0.0, seed=1)
    offered = 0
    for cut in [*sorted(cuts), 1000.0]:
        count = sum(arrival <= cut for arrival in arrivals)
        pieces.offer(arrivals[offered:count], range(offered, count))
        pieces.advance(cut)
        offered = count
    assert pieces.served == once.served
    assert once.served.arrived == arrivals
    assert all(begun >= came for came, begun in zip(arrivals, once.served.started, strict=True))


def test_a_curve_is_straight_between_what_was_measured():
    curve = interpolated([(1, 1.0), (4, 4.0), (2, 1.5)], (1.0, 1.5), 0.1)
    assert curve.seconds == (1.0, 1.5, 2.75, 4.0)
    assert curve.throughput() == pytest.approx(4 / 3)
    assert curve.slower(4) == 3.0


@pytest.mark.parametrize(
    ("field", "value"), [("seconds", ()), ("seconds", (0.0,)), ("slowdown", (0.5,)), ("variation", 1.0)]
)
def test_a_curve_that_cannot_be_is_refused_by_its_field(field, value):
    with pytest.raises(ValueError, match=field):
        ServiceCurve(**{"seconds": (1.0,), field: value})
