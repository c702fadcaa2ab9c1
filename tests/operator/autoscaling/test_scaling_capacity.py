"""The capacity of a replica within its limits, and which of its settings are of use."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.autoscaling.capacity.options import Limit, limits_of, options, planned
from argosy.autoscaling.capacity.queueing import Replica, erlang_c
from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.metrics.histograms import SHARES
from argosy.autoscaling.policy import Bounds, Targets
from argosy.autoscaling.settings import WORTH

EXACT = 2**-13
"""The share of the most that a replica can do, to which a rate is found."""

services = st.builds(
    lambda fixed, per_row, contention: Service(fixed, per_row * fixed, contention),
    st.floats(1e-4, 1.0),
    st.floats(1e-3, 2.0),
    st.floats(0.0, 1.0),
)
replicas = st.builds(
    lambda service, instances, devices, batch, window: Replica(
        service, instances, devices, batch, window * service.fixed
    ),
    services,
    st.integers(1, 5),
    st.sampled_from((1, 2, 4)),
    st.sampled_from((1, 2, 8, 32, 128)),
    st.sampled_from((0.0, 0.1, 0.5, 2.0, 20.0)),
)
shares = st.sampled_from(sorted(SHARES.values()))
times = st.floats(0.5, 100.0)
"""Limits, in times of a batch without rows."""


@given(replicas, shares, times, st.booleans())
def test_a_rate_within_a_limit_is_the_highest(replica: Replica, share: float, times: float, waiting: bool) -> None:
    limit = times * replica.service.fixed
    rate = replica.within(limit, share, replica.most, waiting=waiting)
    if rate > 0:
        assert replica.latency(rate, share, waiting=waiting) <= limit
    if rate < replica.most:
        assert replica.latency(rate + EXACT * replica.most, share, waiting=waiting) > limit


@given(replicas, shares)
def test_more_rows_never_take_less_time(replica: Replica, share: float) -> None:
    taken = [replica.latency(replica.most * point / 200, share) for point in range(200)]
    assert all(more >= less * (1 - 1e-9) for less, more in pairwise(taken))


@given(
    services,
    st.dictionaries(st.sampled_from(sorted(SHARES)), times, max_size=2),
    st.dictionaries(st.sampled_from(sorted(SHARES)), times, max_size=1),
    st.none() | st.floats(0.05, 0.9),
    st.integers(1, 4),
    st.none() | st.sampled_from((0.2, 2.0)),
    st.sampled_from((1, 8, 32)),
)
def test_every_option_has_more_capacity_than_a_cheaper_one(
    service: Service,
    latency: dict[str, float],
    waiting: dict[str, float],
    queue_share: float | None,
    instances: int,
    window: float | None,
    batch: int,
) -> None:
    targets = Targets(
        {name: limit * service.fixed for name, limit in latency.items()},
        {name: limit * service.fixed for name, limit in waiting.items()},
        queue_share=queue_share,
    )
    limits = limits_of(targets, service)
    longest = None if window is None else window * service.fixed
    bounds = Bounds(max_instances=instances, max_window_s=longest, max_batch=batch)
    result = options(service, limits, 0.85, bounds, instances, batch)
    assert all(more.rate > WORTH * less.rate for less, more in pairwise(result))
    assert [(option.instances, option.window_s or 0.0) for option in result] == sorted(
        (option.instances, option.window_s or 0.0) for option in result
    )
    for option in result:
        replica = Replica(service, option.instances, 1, batch, option.window_s or 0.0)
        assert option.rate <= 0.85 * replica.most * (1 + 1e-9)
        for limit in limits:
            seconds = replica.latency(option.rate, limit.share, waiting=limit.waiting)
            assert option.rate == 0 or seconds <= limit.seconds


def erlang_c_by_recursion(servers: int, offered: float) -> float:
    """Return Erlang's C by the recursion of the textbooks, over all servers."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    return servers * blocked / (servers - offered * (1 - blocked))


@given(st.integers(1, 5000), st.floats(0.0, 0.9999))
def test_the_share_that_finds_all_busy_is_erlangs(servers: int, load: float) -> None:
    share = erlang_c(servers, load * servers)
    assert share == pytest.approx(erlang_c_by_recursion(servers, load * servers), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("offered", "share"), [(0.0, 0.0), (5e-324, 0.0), (8.0, 1.0), (9.0, 1.0)])
def test_an_idle_replica_delays_no_request_and_a_full_one_all(offered: float, share: float) -> None:
    assert erlang_c(8, offered) == pytest.approx(share, abs=1e-12)


def test_a_target_below_the_models_own_time_limits_nothing() -> None:
    service = Service(0.1, 0.01)
    assert limits_of(Targets({"p99": 0.05, "p50": 0.5}), service) == (Limit("latency p50", planned("p50"), 0.5),)
    assert planned("p99") == pytest.approx(0.9997)
