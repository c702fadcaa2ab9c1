"""Properties of every decision, whatever is measured."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from math import ceil
from random import Random

from hypothesis import example, given
from hypothesis import strategies as st
from tests.operator.autoscaling.loads import ANYWHERE, POLICY, START, Member, measured

from argosy.api.conditions import Reason
from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.decide import decide
from argosy.autoscaling.decision import Allocation, SpareCapacity
from argosy.autoscaling.memory import Estimates, MemberMemory, Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Bounds, Pace, Policy, Targets

RATES = st.floats(0, 2500)
ABSURD = st.sampled_from([None, 0.0, 1e-9, 1e12])
"""Numbers that cannot be so at all are not known: `metrics` leaves them out."""
POLICIES = st.builds(
    lambda least, more, instances, step, percentile: Policy(
        Bounds(least, least + more, max_instances=instances, max_window_s=0.01, max_batch=8),
        Targets({percentile: 0.1}, concurrency=20.0, queue_share=0.8),
        Pace(step_up=step, step_down=step, stabilization_s=60),
        startup_s=10,
    ),
    st.integers(0, 3),
    st.integers(0, 30),
    st.integers(1, 4),
    st.sampled_from([None, 1, 3]),
    st.sampled_from(["p50", "p95", "p99", "p999"]),
)
FULL = 200.0
"""Requests a second of one replica of the loads here, with full batches."""


@given(RATES, RATES, st.integers(1, 20), st.integers(1, 3))
def test_more_load_never_asks_for_less(one: float, other: float, replicas: int, instances: int) -> None:
    policy = replace(POLICY, bounds=replace(POLICY.bounds, max_instances=3, max_replicas=1000))
    low, high = sorted((one, other))
    desired = []
    for rate in (low, high):
        signals = Signals(START, 15.0, servers=replicas, arrivals=rate, pending=0.0)
        memory = MemberMemory(Memory(estimates=Estimates(service=Service(0.008, 0.004, 0.2))))
        decision, _ = decide(policy, Allocation(replicas, instances), signals, ANYWHERE, memory, START)
        desired.append(decision.own.desired)
    assert desired[0] <= desired[1]


@given(POLICIES, st.lists(RATES, min_size=1, max_size=30), st.integers(0, 40), st.integers(1, 6), st.integers(0, 3))
def test_a_decision_stays_within_bounds_steps_and_spare_capacity(
    policy: Policy, rates: list[float], replicas: int, instances: int, spare: int
) -> None:
    bounds, step = policy.bounds, policy.pace.step_up
    member = Member(policy, Allocation(replicas, instances), SpareCapacity(0, spare, "no GPU is free"))
    for rate in rates:
        before = member.allocation
        after = member.step(measured(rate, member.allocation, member.now)).allocation
        assert bounds.min_replicas <= after.replicas <= bounds.max_replicas
        assert bounds.min_instances <= after.instances <= max(bounds.min_instances, bounds.max_instances)
        assert after.window_s is not None
        assert 0 <= after.window_s <= 0.01
        if bounds.min_replicas <= before.replicas <= bounds.max_replicas and before.replicas > 0:
            assert after.replicas <= before.replicas + spare
            assert step is None or abs(after.replicas - before.replicas) <= step or after.replicas == 0


@given(st.floats(1, 1500), st.integers(1, 3), st.integers(), st.sampled_from([0.0, 0.02, 0.05]))
@example(809.0, 3, 842410, 0.02)
@example(785.0, 1, 416541, 0.05)
@example(781.0, 1, 442621, 0.05)
@example(558.0, 3, 16115, 0.05)
@example(1343.1003439111194, 1, 402041, 0.02)
@example(881.9019637992417, 3, 477529, 0.05)
@example(1181.5160921544732, 2, 124680, 0.05)
@example(174.0, 1, 0, 0.05)
@example(158.13022827571973, 2, 358820, 0.05)
@example(282.0, 2, 2, 0.05)
def test_a_constant_load_is_answered_and_no_step_undone(rate: float, instances: int, seed: int, noise: float) -> None:
    """Once it has settled, an estimate that becomes better asks for at most one step; none is ever undone."""
    policy = replace(POLICY, bounds=replace(POLICY.bounds, max_instances=instances, max_replicas=100))
    member, random = Member(policy), Random(seed)
    for _ in range(360):
        now = rate * random.uniform(1 - noise, 1 + noise)
        member.step(measured(now, member.allocation, member.now))
    settled = [(decision.allocation.replicas, decision.allocation.instances) for decision in member.decisions[180:]]
    assert len([pair for pair in pairwise(settled) if pair[0] != pair[1]]) <= 1


@given(st.lists(st.tuples(st.floats(0, 2500), st.integers(1, 40)), min_size=1, max_size=6))
@example([(1280.0, 5), (0.0, 7), (133.0, 6), (0.0, 11), (201.0, 2)])
def test_it_never_goes_below_what_holds_the_present_load(loads: list[tuple[float, int]]) -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, max_replicas=100)))
    for rate, rounds in loads:
        for _ in range(rounds):
            before = member.allocation.replicas
            after = member.step(measured(rate, member.allocation, member.now)).allocation.replicas
            assert after >= min(before, ceil(rate / FULL))


@given(st.lists(st.sampled_from(["missing", "old", "ahead", "empty"]), min_size=1, max_size=80), st.booleans())
def test_missing_signals_take_nothing_away(errors: list[str], in_use: bool) -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, min_replicas=0)), Allocation(7, 1))
    if in_use:
        member.under(900, 120)
    before = member.allocation
    for error in errors:
        seen = {
            "missing": None,
            "old": measured(0, before, member.now - timedelta(hours=1)),
            "ahead": measured(0, before, member.now + timedelta(hours=1)),
            "empty": Signals(member.now, 15.0),
        }[error]
        decision = member.step(seen)
        assert decision.reason == Reason.NO_SIGNALS
        assert decision.allocation == before


@given(st.lists(st.tuples(RATES, st.floats(-7200, 7200)), min_size=1, max_size=40))
def test_clocks_that_jump_take_nothing_away_too_early(steps: list[tuple[float, float]]) -> None:
    """Each step is a jump, so that nothing was ever seen for a whole window."""
    member = Member(allocation=Allocation(9))
    for rate, jump in steps:
        member.now += timedelta(seconds=jump if abs(jump) > 70 else 70)
        assert member.step(measured(rate, member.allocation, member.now)).allocation.replicas >= 9


@given(st.lists(st.tuples(ABSURD, ABSURD, ABSURD, ABSURD), min_size=1, max_size=20))
def test_absurd_numbers_raise_nothing_and_stay_within_bounds(
    numbers: list[tuple[float | None, float | None, float | None, float | None]],
) -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, max_instances=4)), Allocation(3))
    for arrivals, execution, busy, pending in numbers:
        signals = measured(100, member.allocation, member.now)
        strange = replace(signals, arrivals=arrivals, execution=execution, busy=busy, pending=pending, batch=execution)
        assert 1 <= member.step(strange).allocation.replicas <= 20
