"""What is decided of one member, round by round."""

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs
from tests.operator.autoscaling.loads import POLICY, START, Member, measured

from argosy.api.conditions import Reason
from argosy.autoscaling.decide import decide
from argosy.autoscaling.decision import Allocation, Decision, Room
from argosy.autoscaling.learning.demand import Demand
from argosy.autoscaling.learning.memory import Asked, Memory
from argosy.autoscaling.learning.overdriven import reconsidered
from argosy.autoscaling.metrics.signals import Distribution, Signals
from argosy.autoscaling.policy import Pace, QueryTarget, Targets


def bounded(**bounds: object) -> Member:
    return Member(replace(POLICY, bounds=replace(POLICY.bounds, **bounds)))  # type: ignore[arg-type]


def test_more_load_gets_more_replicas_and_says_by_which_numbers() -> None:
    member = Member()
    member.under(20, 60)
    assert member.allocation.replicas == 1
    decision = member.under(900, 60)
    assert 6 <= member.allocation.replicas <= 9
    up = next(each for each in member.decisions if each.reason == Reason.SCALED_UP)
    assert "900 requests/s come" in up.message
    assert "p99 100 ms" in up.message
    assert (decision.metric, decision.target) == ("latency p99", 0.1)


def test_down_comes_after_a_whole_stabilisation_window_only() -> None:
    member = Member()
    member.under(900, 120)
    member.under(900, 60)
    most = member.allocation.replicas
    member.under(100, 55)
    assert member.allocation.replicas == most
    member.under(100, 30)
    assert member.allocation.replicas == 1


def test_instances_come_before_replicas() -> None:
    member = bounded(max_instances=4)
    for rate, instances in ((150, 1), (190, 2), (380, 3)):
        member.under(rate, 60)
        assert (member.allocation.replicas, member.allocation.instances) == (1, instances)


def test_no_more_than_one_instance_beyond_those_that_were_seen_at_work_is_counted_on() -> None:
    member = bounded(max_instances=4)
    member.under(100, 60)
    member.under(2000, 5)
    assert member.allocation.instances == 2
    assert member.allocation.replicas > 2


def test_what_a_bound_kept_away_is_not_taken_for_what_replicas_do_not_hold() -> None:
    """Else they would be thought to hold less and less while the load falls, and stay."""
    member = bounded(max_replicas=3)
    member.under(1500, 600)
    assert member.allocation.replicas == 3
    for rate in range(1500, 100, -20):
        member.under(rate, 20)
    member.under(100, 600)
    assert member.allocation.replicas == 1


def test_few_requests_tell_nothing_of_how_many_rows_one_has() -> None:
    """An execution that began before the window, or ends after it, is no row of the few that were answered in it."""
    member = bounded(max_instances=4)
    member.under(1.0, 120, completions=0.2)
    assert member.memory.rows == 1.0
    member.under(150.0, 300, completions=75.0)
    assert member.memory.rows == pytest.approx(2.0, rel=0.1)


def test_what_starts_is_not_given_up_before_it_is_ready() -> None:
    member = Member(replace(POLICY, pace=Pace(stabilization_s=0, calm_s=0), startup_s=30))
    member.under(100, 60)
    member.under(900, 10)
    most = member.allocation.replicas
    decision = member.under(100, 15)
    assert (decision.allocation.replicas, decision.limited_by) == (most, "startup")
    assert "the newest still start" in decision.message
    member.under(100, 30)
    assert member.allocation.replicas < most


def test_signals_that_are_missing_or_old_take_nothing_away() -> None:
    member = Member(allocation=Allocation(replicas=5))
    assert member.step(None).reason == Reason.NO_SIGNALS
    for _ in range(100):
        decision = member.step(measured(1, member.allocation, START - timedelta(hours=1)))
    assert decision.allocation.replicas == 5
    assert "s old" in decision.message


def test_what_was_measured_before_takes_nothing_away_however_often_it_is_told() -> None:
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


def test_a_server_that_nobody_measures_takes_no_instances_away_and_keeps_from_zero() -> None:
    member = bounded(max_instances=4, min_replicas=0)
    member.policy = replace(member.policy, pace=Pace(stabilization_s=20, idle_s=20))
    member.under(2000, 60)
    before = member.allocation
    member.under(0, 60, running=0.0, pending=0.0, unmeasured=1)
    assert member.allocation == before


def test_what_is_measured_seldom_is_not_old_before_it_could_be_measured_again() -> None:
    member = Member()
    signals = replace(measured(50, Allocation(), START), at=START - timedelta(seconds=150), recent_s=60.0)
    assert member.step(signals).reason is not Reason.NO_SIGNALS
    assert member.step(replace(signals, recent_s=15.0)).reason is Reason.NO_SIGNALS


def test_a_restart_takes_nothing_away_before_a_whole_window_was_seen() -> None:
    member = Member(allocation=Allocation(replicas=5), memory=Memory.rebuilt(None))
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
    assert member.step(None, held=3).message.startswith("Goes from 0 to 1 replica: 3 requests waited")
    assert member.allocation.replicas == 1


def test_without_room_it_says_what_is_missing() -> None:
    member = Member(allocation=Allocation(replicas=2), room=Room(replicas=2, missing="no GPU is free"))
    decision = member.step(measured(900, member.allocation, member.now))
    assert decision.allocation.replicas == 4
    assert decision.reason == Reason.LIMITED_BY_CAPACITY
    assert decision.desired > 4
    assert decision.message.endswith(f"; room for 2 more, {decision.desired - 2} are wanted; no GPU is free.")
    again = member.step(measured(900, member.allocation, member.now))  # it has those two, and there are two more
    assert again.allocation.replicas == 6
    member.room = Room(replicas=0, missing="no GPU is free")
    full = member.step(measured(2000, member.allocation, member.now))
    assert full.message.endswith(f"; no room for {min(full.desired, 20) - 6} more; no GPU is free.")


def test_replicas_that_somebody_else_decides_stay() -> None:
    member = bounded(min_replicas=3, max_replicas=3, fixed_by="spec.replicas")
    assert member.under(900, 60).reason == Reason.FIXED_REPLICAS
    assert member.allocation.replicas == 3


def test_out_of_memory_lowers_batches_first_and_then_instances() -> None:
    member = bounded(max_instances=2)
    member.allocation = Allocation(instances=2)
    member.under(10, 100, out_of_memory=0.2)
    seen = [each.allocation for each in member.decisions]
    assert [each.max_batch for each in dict.fromkeys(seen)] == [4, 2, 1, 1]
    assert seen[-1].instances == 1


def test_a_latency_below_the_models_own_time_is_told_with_both_numbers() -> None:
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


def test_without_measured_executions_a_latency_over_its_target_adds_replicas() -> None:
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


def test_a_load_that_comes_back_soon_is_waited_for_the_next_time() -> None:
    member = Member(replace(POLICY, pace=Pace(stabilization_s=30)))
    kept = []
    for _ in range(4):
        member.under(900, 120)
        member.under(5, 90)
        kept.append(member.allocation.replicas)
    assert kept[0] == 1
    assert kept[-1] > 3


def slow(rate: float, member: Member) -> Signals:
    """A replica holds two requests a second, in batches of four seconds."""
    return measured(rate, member.allocation, member.now, fixed=0.8, per_row=0.4)


def after_a_burst(limit_s: float) -> tuple[int, int, Decision]:
    """Replicas during ten seconds of twenty times the load, and half a minute after them; the last decision."""
    policy = replace(POLICY, bounds=replace(POLICY.bounds, max_replicas=100), targets=Targets({"p99": limit_s}))
    member = Member(policy)
    for _ in range(30):
        member.step(slow(2.0, member))
    for _ in range(2):
        member.step(slow(40.0, member))
    during = member.allocation.replicas
    for _ in range(6):
        member.step(slow(2.0, member))
    return during, member.allocation.replicas, member.decisions[-1]


def test_a_burst_is_kept_for_as_far_as_requests_cannot_wait_it_out() -> None:
    """Ten seconds of 40 requests/s are worked off with none waiting for 6.4 s by who holds 24/s."""
    during, after, decision = after_a_burst(20.0)
    assert 24 * 1.05 / 2 < after < 24 * 1.05 / 2 * 1.3 < during
    assert decision.message.endswith(f"; the last 60 s asked for {after}.")
    during, after, _ = after_a_burst(4.6)
    assert after >= 40 * 1.05 / 2


def test_hardly_more_than_there_is_has_to_be_read_twice() -> None:
    member = Member()
    member.under(500, 290)
    held = member.allocation.replicas
    short = next(rate for rate in range(500, 900, 5) if wants_more(member, rate))
    decision = member.under(short, 5)
    assert (decision.allocation.replicas, decision.desired) == (held, held + 1)
    assert decision.message.endswith("; so little more may be chance, which the next readings tell.")
    assert member.under(short, 5).allocation.replicas > held


@pytest.mark.parametrize(("learnt", "left"), [(1.0, 4), (1.05, 4), (1.15, 3)])
def test_replicas_stay_while_what_one_holds_is_learnt_a_little_anew(learnt: float, left: int) -> None:
    """Nine tenths of a load are the same load, and three replicas would hold them."""
    member = Member()
    member.under(500, 300)
    kept = member.memory.kept_for
    assert kept is not None
    member.memory = structs.replace(member.memory, kept_for=structs.replace(kept, holds=kept.holds / learnt))
    member.under(445, 240)
    assert member.allocation.replicas == left
    assert member.memory.holds == pytest.approx(kept.holds / member.memory.rows, rel=0.001)


def wants_more(member: Member, rate: float) -> bool:
    signals = measured(rate, member.allocation, member.now)
    return decide(POLICY, member.allocation, signals, Room(), member.memory, member.now)[0].desired > (
        member.allocation.replicas
    )


def test_a_queue_at_most_doubles_what_is_asked_for() -> None:
    member = Member(replace(POLICY, bounds=replace(POLICY.bounds, max_replicas=1000)))
    member.under(500, 300)
    calm = member.allocation.replicas
    asked = [member.under(500, 5, pending=pending).desired for pending in (1500.0, 15e3, 150e3)]
    assert calm < asked[0] <= asked[1] == asked[2] <= 2.5 * calm


def test_a_replica_more_that_the_same_load_needed_after_all_is_kept() -> None:
    member = Member()
    member.under(500, 300)
    held = member.allocation.replicas
    slow = {"latency": Distribution(0.15, *[0.15] * 5)}
    member.under(500, 300, **slow)
    more = member.allocation.replicas
    assert more > held
    member.under(500, 1200)
    assert member.allocation.replicas == more


def test_a_latency_that_nothing_explains_asks_for_more_once_what_it_asked_for_had_its_time() -> None:
    member = Member(replace(POLICY, startup_s=30))
    late = Distribution(0.3, *[0.3] * 5)
    before = []
    for _ in range(20):
        signals = measured(100, member.allocation, member.now)
        before.append(
            member.step(replace(signals, execution=None, batch=None, busy=None, latency=late)).allocation.replicas
        )
    assert before[:9] == [3] * 9
    assert before[9:18] == [9] * 9
    assert before[18] == 20


def test_what_replicas_were_found_not_to_hold_is_not_found_again_for_what_follows_from_it() -> None:
    """Else the level's noise would lower it further each time, until all replicas that may be idle."""
    before = START - timedelta(minutes=10)
    memory = Memory(demand=Demand.of(10.0), seen_from=before, asked=(Asked(before, 5.0, 10.0, 10.0),))
    found = reconsidered(POLICY, Allocation(5), 10.0, 6, 15.0, memory, START)
    assert found.overdriven is not None
    assert found.overdriven.rate == pytest.approx(2.0)
    assert reconsidered(POLICY, Allocation(5), 9.9, 6, 15.0, found, START) is found
