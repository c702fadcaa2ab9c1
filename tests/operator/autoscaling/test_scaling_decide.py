"""Decisions on one member, round by round."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.operator.autoscaling.loads import ONE, POLICY, START, Member, measured

from argosy.api.conditions import Reason
from argosy.autoscaling.decision import Allocation, AllocationChange, Lowering, SpareCapacity
from argosy.autoscaling.memory import MemberMemory, Memory
from argosy.autoscaling.metrics.histograms import Distribution
from argosy.autoscaling.policy import Pace, QueryTarget, Served, Targets


def bounded(**bounds: object) -> Member:
    return Member(replace(POLICY, bounds=replace(POLICY.bounds, **bounds)))  # type: ignore[arg-type]


def test_more_load_gets_more_replicas_and_the_message_has_the_numbers() -> None:
    member = Member()
    member.under(20, 60)
    assert member.allocation.replicas == 1
    decision = member.under(900, 60)
    assert 6 <= member.allocation.replicas <= 13  # the queue is worked off, too
    up = next(decision for decision in member.decisions if decision.reason == Reason.SCALED_UP)
    assert "900 requests/s come" in up.message
    assert "p99 100 ms" in up.message
    assert (decision.metric, decision.target) == ("latency p99", 0.1)


def test_scaling_down_waits_for_a_full_stabilization_window() -> None:
    member = Member()
    member.under(900, 120)
    member.under(900, 60)
    most = member.allocation.replicas
    member.under(100, 55)
    assert member.allocation.replicas == most
    member.under(100, 30)
    assert member.allocation.replicas == 1


@pytest.mark.parametrize(("busy_low", "replicas"), [(0.0, 5), (0.2, 5), (0.7, 4), (0.8, 3)])
def test_the_lower_busy_share_is_a_margin_on_the_way_down(busy_low: float, replicas: int) -> None:
    targets = Targets(concurrency=10.0, busy_low=busy_low)
    member = Member(replace(POLICY, targets=targets), allocation=Allocation(replicas=5))
    member.under(10, 600, pending=0.0, running=28.0, execution=None)
    assert member.allocation.replicas == replicas


def test_instances_replace_replicas_once_they_are_measured() -> None:
    """They are tried next to the replicas that are needed meanwhile, and cost no GPU."""
    member = bounded(max_instances=4)
    for rate, instances in ((120, 1), (160, 2), (400, 3)):
        member.under(rate, 200)
        assert (member.allocation.replicas, member.allocation.instances) == (1, instances)


def test_at_most_one_instance_more_than_measured_is_relied_on() -> None:
    member = bounded(max_instances=4)
    member.under(100, 60)
    member.under(2000, 5)
    assert member.allocation.instances == 2
    assert member.allocation.replicas > 2


def test_few_requests_do_not_change_the_rows_of_a_request() -> None:
    """An execution that began before the window, or ends after it, is no row of the few that were answered in it."""
    member = bounded(max_instances=4)
    member.under(1.0, 120, completions=0.2)
    assert member.memory.own.estimates.rows == 1.0
    member.under(150.0, 300, completions=75.0)
    assert member.memory.own.estimates.rows == pytest.approx(2.0, rel=0.1)


def test_signals_that_are_missing_or_old_take_nothing_away() -> None:
    member = Member(allocation=Allocation(replicas=5))
    assert member.step(None).reason == Reason.NO_SIGNALS
    for _ in range(100):
        decision = member.step(measured(1, member.allocation, START - timedelta(hours=1)))
    assert decision.allocation.replicas == 5
    assert "s old" in decision.message


def test_repeated_old_measurements_take_nothing_away() -> None:
    member = bounded(max_instances=4, min_replicas=0)
    member.policy = replace(member.policy, pace=Pace(stabilization_s=20, idle_s=20))
    member.under(2000, 60)
    member.under(0, 15, running=0.0, pending=0.0)
    before = member.allocation
    last = measured(0, member.allocation, member.now - timedelta(seconds=5))
    for _ in range(10):
        decision = member.step(replace(last, running=0.0, out_of_memory=1.0))
        assert decision.allocation == before
        assert decision.reason is not Reason.NO_SIGNALS
    member.under(0, 30, running=0.0, pending=0.0)
    assert member.allocation.replicas == 0


def test_an_unmeasured_server_keeps_instances_and_prevents_zero() -> None:
    member = bounded(max_instances=4, min_replicas=0)
    member.policy = replace(member.policy, pace=Pace(stabilization_s=20, idle_s=20))
    member.under(2000, 60)
    before = member.allocation
    member.under(0, 60, running=0.0, pending=0.0, unmeasured=1)
    assert member.allocation == before


def test_signals_are_not_old_before_the_next_measurement_is_due() -> None:
    member = Member()
    signals = replace(measured(50, Allocation(), START), at=START - timedelta(seconds=150), recent_s=60.0)
    assert member.step(signals).reason is not Reason.NO_SIGNALS
    assert member.step(replace(signals, recent_s=15.0)).reason is Reason.NO_SIGNALS


def test_a_restart_takes_nothing_away_before_a_full_window() -> None:
    member = Member(allocation=Allocation(replicas=5), memory=MemberMemory(Memory.restored(None)))
    member.under(1, 55)
    assert member.allocation.replicas == 5
    member.under(1, 30)
    assert member.allocation.replicas == 1


def test_to_zero_after_idle_and_back_for_a_request_that_waits() -> None:
    member = bounded(min_replicas=0)
    member.under(20, 60)
    member.under(0, 890, running=0.0, pending=0.0)
    assert member.allocation.replicas == 1
    member.under(0, 60, running=0.0, pending=0.0)
    assert member.allocation.replicas == 0
    assert member.step(None).reason == Reason.AT_MINIMUM
    assert member.step(None, queued=3).message.startswith("Goes from 0 to 1 replica: 3 requests waited")
    assert member.allocation.replicas == 1


def test_without_spare_capacity_the_message_says_what_is_missing() -> None:
    member = Member(allocation=Allocation(replicas=2), spare=SpareCapacity(replicas=2, missing="no GPU is free"))
    decision = member.step(measured(900, member.allocation, member.now))
    assert decision.allocation.replicas == 4
    assert decision.reason == Reason.LIMITED_BY_CAPACITY
    assert decision.desired > 4
    assert decision.message.endswith(f"; room for 2 more, {decision.desired - 2} are wanted; no GPU is free.")
    again = member.step(
        measured(900, member.allocation, member.now)
    )  # it has those two, and there is capacity for two more
    assert again.allocation.replicas == 6
    member.spare = SpareCapacity(replicas=0, missing="no GPU is free")
    full = member.step(measured(2000, member.allocation, member.now))
    assert full.message.endswith(f"; no room for {min(full.desired, 20) - 6} more; no GPU is free.")


def test_replicas_that_the_spec_fixes_stay() -> None:
    member = bounded(min_replicas=3, max_replicas=3, fixed_by="spec.replicas")
    assert member.under(900, 60).reason == Reason.FIXED_REPLICAS
    assert member.allocation.replicas == 3


def test_out_of_memory_lowers_batches_first_and_then_instances() -> None:
    member = bounded(max_instances=2)
    member.allocation = Allocation(instances=2)
    member.under(10, 100, out_of_memory=0.2)
    seen = [decision.allocation for decision in member.decisions]
    assert [allocation.max_batch for allocation in dict.fromkeys(seen)] == [4, 2, 1, 1]
    assert seen[-1].instances == 1


def test_a_latency_below_the_models_own_time_is_reported_with_both() -> None:
    member = Member(replace(POLICY, targets=Targets({"p99": 0.005})))
    decision = member.under(20, 60)
    assert "p99 5 ms is out of reach, one request alone is executed for 12 ms" in decision.message
    assert decision.limited_by == "spec.slo.latency.p99"
    assert member.allocation.replicas <= 2


def test_a_query_that_has_no_value_takes_nothing_away() -> None:
    policy = replace(POLICY, targets=Targets(queries=(QueryTarget("jobs", 10), QueryTarget("lost", 1))))
    member = Member(policy)
    empty = {"arrivals": None, "execution": None, "busy": None}
    member.step(replace(measured(1, member.allocation, member.now), **empty), jobs=45.0)
    assert member.allocation.replicas == 5
    assert "query jobs is 45, target 10" in member.decisions[-1].message
    for _ in range(100):
        member.step(replace(measured(1, member.allocation, member.now), **empty), jobs=5.0)
    assert member.allocation.replicas == 5
    for _ in range(100):
        decision = member.step(replace(measured(1, member.allocation, member.now), **empty))
    assert decision.allocation.replicas == 5
    assert decision.reason == Reason.NO_SIGNALS


def test_without_executions_a_latency_over_target_adds_replicas() -> None:
    member = Member()
    slow = Distribution(0.2, *[0.2] * 5)
    decision = member.step(replace(measured(1, member.allocation, member.now), execution=None, latency=slow))
    assert decision.allocation.replicas == 2
    assert "latency p99 is 200 ms, target 100 ms" in decision.message


def test_a_clock_that_is_set_back_does_not_block_scaling_up() -> None:
    member = Member(replace(POLICY, pace=replace(POLICY.pace, cooldown_up_s=60)))
    member.under(400, 60)
    before = member.allocation.replicas
    member.now -= timedelta(hours=1)
    member.under(900, 120)
    assert member.allocation.replicas > before


def test_a_change_dated_in_the_future_blocks_scaling_like_one_of_now() -> None:
    member = Member(replace(POLICY, pace=replace(POLICY.pace, cooldown_up_s=60)))
    ahead = member.now + timedelta(days=400)
    change = AllocationChange(ahead, ONE, Allocation(2), Reason.SCALED_UP, "more load")
    lowering = Lowering(ahead, Served(), "memory ran out")
    member.allocation, member.memory = Allocation(2), MemberMemory(Memory.restored(change, lowering))
    member.under(900, 30)
    assert member.allocation.replicas == 2
    member.under(900, 60)
    assert member.allocation.replicas > 2
    assert member.under(900, 5, out_of_memory=1.0).allocation.max_batch == 4


def test_a_queue_at_most_doubles_the_recommendation() -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, max_replicas=1000)))
    member.under(500, 300)
    calm = member.allocation.replicas
    desired = [member.under(500, 5, pending=pending).desired for pending in (1500.0, 15e3, 150e3)]
    assert calm < desired[0] <= desired[1] == desired[2] <= 2.5 * calm


def test_an_unexplained_latency_adds_replicas_step_by_step() -> None:
    member = Member(replace(POLICY, startup_s=30))
    slow = Distribution(0.3, *[0.3] * 5)
    before = []
    for _ in range(20):
        signals = measured(100, member.allocation, member.now)
        before.append(
            member.step(replace(signals, execution=None, batch=None, busy=None, latency=slow)).allocation.replicas
        )
    assert before[:9] == [3] * 9
    assert before[9:18] == [9] * 9
    assert before[18] == 20


def test_another_version_is_measured_from_the_beginning() -> None:
    member = Member(replace(POLICY, served=Served((1,))))
    for rate in (20, 120, 180):
        member.under(rate, 300)
    faster = member.memory.own.estimates.service
    member.policy = replace(member.policy, served=Served((1, 2)))
    member.under(20, 60)
    assert member.memory.own.estimates.service == faster
    member.policy = replace(member.policy, served=Served((2,)))
    for _ in range(6):
        member.step(measured(20, member.allocation, member.now, fixed=0.08, per_row=0.04))
    service = member.memory.own.estimates.service
    assert service is not None
    assert service.seconds(1.0) == pytest.approx(0.12, rel=0.15)
