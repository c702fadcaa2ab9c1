"""What a replica holds is found in few looks: held to the slow way, which halves an interval for each setting."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.autoscaling.capacity.queueing import Curve, Replica, within
from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.capacity.settings import SHARES, Limits, Setting, planned, settings
from argosy.autoscaling.policy import Bounds

EXACT = 1e-4
"""What docs/scaling.md says: a rate is found to a ten-thousandth of itself, never above it."""
NOTHING = 1e-8
"""Of the most that a replica can do: what is less is no rate."""
HALVINGS = 60
POINTS = 200
WORTH_IT = 1.25

services = st.builds(
    lambda fixed, per_row, contention: Service(fixed, per_row * fixed, contention),
    st.floats(1e-4, 1.0),
    st.floats(1e-3, 2.0),
    st.floats(0.0, 1.0),
)
replicas = st.builds(
    lambda service, instances, devices, batch, window, variation: Replica(
        service, instances, devices, batch, window * service.fixed, variation
    ),
    services,
    st.integers(1, 5),
    st.sampled_from((1, 2, 4)),
    st.sampled_from((1, 2, 8, 32, 128)),
    st.sampled_from((0.0, 0.1, 0.5, 2.0, 20.0)),
    st.floats(0.1, 4.0),
)
shares = st.sampled_from(sorted(SHARES.values()))
times = st.floats(0.5, 100.0)
"""Limits, in times of a batch without rows."""


def seconds(replica: Replica, rate: float, share: float, *, waiting: bool) -> float:
    return Curve(replica, share, waiting=waiting).at(rate)


def slowly(replica: Replica, longest: float, share: float, *, waiting: bool) -> float:
    """The rate up to which it is at most `longest`: by halves, of what is the most at any lower rate."""
    full = replica.max_batch / replica.window_s if replica.window_s else replica.most

    def held(rate: float) -> bool:
        return all(seconds(replica, each, share, waiting=waiting) <= longest for each in {rate, min(rate, full)})

    low, high = 0.0, replica.most
    if not held(low):
        return 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) else (low, middle)
    return low


@given(replicas, shares, times, st.booleans())
def test_a_rate_is_found_to_a_ten_thousandth_and_never_above(
    replica: Replica, share: float, times: float, waiting: bool
) -> None:
    longest = times * replica.service.fixed
    exact = slowly(replica, longest, share, waiting=waiting)
    found = within(Curve(replica, share, waiting=waiting), longest, replica.most)
    assert exact * (1 - EXACT) - NOTHING * replica.most <= found <= exact * (1 + 1e-9)


@given(replicas, shares, times, st.booleans())
def test_what_is_held_at_a_rate_is_held_at_all_lower_ones(
    replica: Replica, share: float, times: float, waiting: bool
) -> None:
    longest = times * replica.service.fixed
    most = within(Curve(replica, share, waiting=waiting), longest, replica.most)
    if most > 0:
        taken = [seconds(replica, most * each / POINTS, share, waiting=waiting) for each in range(POINTS + 1)]
        assert max(taken) <= longest * (1 + 1e-9)


@given(replicas, shares)
def test_where_no_batch_waits_more_rows_never_take_less_time(replica: Replica, share: float) -> None:
    """Which is what allows to look at few rates: with a window it holds but for the window itself."""
    replica = Replica(replica.service, replica.instances, replica.devices, replica.max_batch, 0.0, replica.variation)
    taken = [replica.latency(replica.most * each / POINTS, share) for each in range(POINTS)]
    assert all(more >= less * (1 - 1e-9) for less, more in pairwise(taken))


def held_slowly(replica: Replica, limits: Limits) -> float:
    rates = [limits.busy * replica.most]
    rates += [slowly(replica, longest, planned(name), waiting=False) for name, longest in limits.latency]
    rates += [slowly(replica, longest, planned(name), waiting=True) for name, longest in limits.waiting]
    if limits.queue_share is not None:
        alone = replica.service.seconds(1.0, replica.instances)
        longest = alone * limits.queue_share / (1 - limits.queue_share)
        rates.append(slowly(replica, longest, 0.5, waiting=True))
    return min(rates)


def by_all(service: Service, limits: Limits, bounds: Bounds, batch: int, variation: float) -> list[Setting]:
    """Each setting with its rate, whatever it is worth."""
    windows = [None] if bounds.max_window_s is None else [each * bounds.max_window_s for each in (0.0, 0.25, 0.5, 1.0)]
    found = []
    for instances in range(bounds.min_instances, bounds.max_instances + 1):
        for window in windows:
            replica = Replica(service, instances, bounds.devices, batch, window or 0.0, variation)
            found.append(Setting(instances, window, held_slowly(replica, limits)))
    return found


limited = st.builds(
    lambda latency, waiting, share, busy: (latency, waiting, share, busy),
    st.dictionaries(st.sampled_from(sorted(SHARES)), times, max_size=2),
    st.dictionaries(st.sampled_from(sorted(SHARES)), times, max_size=1),
    st.none() | st.floats(0.05, 0.9),
    st.floats(0.5, 1.0),
)


@given(
    services,
    limited,
    st.integers(1, 2),
    st.integers(1, 4),
    st.none() | st.sampled_from((0.0, 0.2, 2.0)),
    st.sampled_from((1, 8, 32)),
    st.sampled_from((0.5, 1.0, 2.0)),
)
def test_the_settings_are_those_of_all_that_hold_a_quarter_more_than_the_ones_before(
    service: Service,
    limited: tuple[dict[str, float], dict[str, float], float | None, float],
    fewest: int,
    more: int,
    window: float | None,
    batch: int,
    variation: float,
) -> None:
    latency, waiting, share, busy = limited
    limits = Limits(
        tuple(sorted((name, each * service.fixed) for name, each in latency.items())),
        tuple(sorted((name, each * service.fixed) for name, each in waiting.items())),
        share,
        busy,
    )
    longest = None if window is None else window * service.fixed
    bounds = Bounds(min_instances=fewest, max_instances=fewest + more, max_window_s=longest, max_batch=batch)
    found = settings(service, limits, bounds, bounds.max_instances, batch, variation)
    every = {(each.instances, each.window_s): each for each in by_all(service, limits, bounds, batch, variation)}
    for each in found:
        assert each.rate == pytest.approx(
            every[each.instances, each.window_s].rate,
            rel=EXACT,
            abs=NOTHING * bounds.max_instances * batch / service.fixed,
        )
    rest = iter(found[1:])
    best, after = found[0], next(rest, None)
    for each in list(every.values())[1:]:
        if after is not None and (each.instances, each.window_s) == (after.instances, after.window_s):
            assert each.rate >= best.rate * WORTH_IT
            best, after = after, next(rest, None)
        else:
            assert each.rate <= best.rate * WORTH_IT * (1 + 2 * EXACT)
    assert after is None
