"""Decisions in a round: what they fill in, what the plan grants of them, priorities, and the statuses."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.operator.planning import declared

from argosy.api import ConditionType, Reason, Resource
from argosy.api.scalingstatus import ScalingChange, ScalingStatus
from argosy.api.status import InferenceModelStatus
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.decision import Allocation, AllocationChange, Decision
from argosy.planning.facts import Gpu, Node, ServerReport
from argosy.reconcile import RoundOutcome, reconcile
from argosy.snapshot import FleetSnapshot, PoolSnapshot
from argosy_agent.contract import LoadedModel, LoadState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GIB = 1 << 30
POOL = PoolKey.of("default", "p")


def model(name: str, **spec: Any) -> Resource:
    return declared.model(name, **{"footprint": {"gpus": 1}} | spec)


def gpus(count: int) -> tuple[Node, ...]:
    return (Node("a", tuple(Gpu(index, 80 * GIB) for index in range(count))),)


def decision(replicas: int, reason: Reason = Reason.SCALED_UP, **fields: Any) -> Decision:
    message = f"{replicas} replicas, as busy is 95 %"
    allocation = Allocation(
        replicas, **{item: fields.pop(item) for item in ("instances", "window_s") if item in fields}
    )
    return Decision(allocation, fields.pop("desired", replicas), reason, message, "busy", 0.951234, 0.9, **fields)


def placed(outcome: RoundOutcome, name: str) -> int:
    return sum(p.model == name for server in outcome.plan.pools[0].servers for p in server.placements)


def status(outcome: RoundOutcome, name: str) -> InferenceModelStatus:
    result = outcome.statuses[f"InferenceModel default/{name}"]
    assert isinstance(result, InferenceModelStatus)
    return result


def scaling(outcome: RoundOutcome, name: str) -> ScalingStatus:
    result = status(outcome, name).scaling
    assert result is not None
    return result


def reason(outcome: RoundOutcome, name: str, kind: ConditionType = ConditionType.SCALING) -> tuple[str, str]:
    condition = status(outcome, name).condition(kind)
    assert condition is not None
    return condition.status, condition.reason


def snapshot(*resources: Resource, nodes: tuple[Node, ...], **decisions: Decision) -> FleetSnapshot:
    reported = {f"InferenceModel default/{name}": decision for name, decision in decisions.items()}
    return FleetSnapshot(resources=(declared.pool(), *resources), nodes=nodes, decisions=reported)


def test_what_was_decided_is_placed_and_reported() -> None:
    scaled = AllocationChange(NOON, Allocation(1), Allocation(3), Reason.SCALED_UP, "busy is 95 %")
    before = snapshot(model("m", maxReplicas=4), nodes=gpus(4), m=decision(3, change=scaled))
    outcome = reconcile(before, NOON)
    assert placed(outcome, "m") == 3
    reported = scaling(outcome, "m")
    assert (reported.replicas, reported.desired, reported.observed, reported.target) == (3, 3, 0.9512, 0.9)
    assert reported.last_scale_time == "2026-01-01T12:00:00Z"
    assert [(item.former_replicas, item.replicas, item.reason) for item in reported.history] == [(1, 3, "ScaledUp")]
    assert reason(outcome, "m") == ("True", "ScaledUp")
    again = reconcile(outcome.after(before), NOON + timedelta(seconds=5))
    assert scaling(again, "m").history == reported.history  # told once


def test_instances_and_the_window_are_filled_in_where_the_spec_is_free() -> None:
    small = {"footprint": {"gpuMemory": "4Gi"}, "slo": {"latency": {"p99": "100ms"}}, "maxBatchSize": 8, "batching": {}}
    decided = decision(1, instances=3, window_s=0.002)
    outcome = reconcile(snapshot(model("m", **small), nodes=gpus(1), m=decided), NOON)
    config = outcome.steps[POOL][0].repository.models[0].config_text
    assert "count: 3" in config
    assert "max_queue_delay_microseconds: 2000" in config
    (placement,) = outcome.plan.pools[0].servers[0].placements
    assert (placement.instances, placement.memory) == (3, 12 * GIB)
    assert scaling(outcome, "m").instances == 3
    assert scaling(outcome, "m").max_queue_delay_microseconds == 2000
    fixed = model("m", **small | {"instances": 2, "batching": {"maxQueueDelayMicroseconds": 500}})
    config = reconcile(snapshot(fixed, nodes=gpus(1), m=decided), NOON).steps[POOL][0].repository.models[0].config_text
    assert "count: 2" in config
    assert "max_queue_delay_microseconds: 500" in config


def test_spare_instances_are_those_of_the_gpu() -> None:
    small = {"footprint": {"gpuMemory": "10Gi"}, "scaling": {}}
    outcome = reconcile(snapshot(model("m", **small), nodes=gpus(1), m=decision(1, instances=2)), NOON)
    assert outcome.grants["InferenceModel default/m"].spare.instances == 4  # 64 GiB, of which it has 20


def test_without_a_decision_it_goes_on_with_what_its_status_tells() -> None:
    requested = model("m", maxReplicas=4)
    reported = InferenceModelStatus(scaling=ScalingStatus(replicas=3, history=(_change(3),)))
    before = snapshot(requested, nodes=gpus(4))
    outcome = reconcile(replace(before, statuses={requested.identity: reported}), NOON)
    assert placed(outcome, "m") == 3
    assert reason(outcome, "m") == ("Unknown", "NoSignals")
    assert scaling(outcome, "m").history == (_change(3),)


def _change(replicas: int) -> ScalingChange:
    return ScalingChange(time="2026-01-01T11:00:00Z", replicas=replicas, reason="ScaledUp", message="busy")


def test_a_decision_gives_way_to_bounds_that_were_edited() -> None:
    outcome = reconcile(snapshot(model("m", maxReplicas=2), nodes=gpus(4), m=decision(4)), NOON)
    assert placed(outcome, "m") == 2


def test_replicas_of_a_person_win_and_the_status_says_so() -> None:
    requested = model("m", replicas=2, minReplicas=1, maxReplicas=4, slo={"latency": {"p99": "1s"}})
    outcome = reconcile(snapshot(requested, nodes=gpus(4), m=decision(2, Reason.FIXED_REPLICAS)), NOON)
    assert placed(outcome, "m") == 2
    assert reason(outcome, "m") == ("True", "FixedReplicas")
    assert scaling(outcome, "m").message.startswith("spec.replicas is 2, and decides")


def test_what_was_requested_and_is_not_there_is_no_fault() -> None:
    outcome = reconcile(snapshot(model("m", maxReplicas=4), nodes=gpus(2), m=decision(3)), NOON)
    grant = outcome.grants["InferenceModel default/m"]
    assert (grant.requested, grant.placed) == (3, 2)
    assert grant.spare.replicas == 0
    assert "free" in grant.spare.missing
    assert reason(outcome, "m", ConditionType.PLACED) == ("True", "Placed")


def test_a_model_limited_by_capacity_grows_as_soon_as_there_is_some() -> None:
    short = decision(2, Reason.LIMITED_BY_CAPACITY, desired=3)
    before = snapshot(model("m", maxReplicas=4), nodes=gpus(2), m=short)
    outcome = reconcile(before, NOON)
    assert reason(outcome, "m") == ("False", "LimitedByCapacity")
    assert outcome.grants["InferenceModel default/m"].spare.replicas == 0
    roomier = reconcile(replace(before, nodes=gpus(3)), NOON)
    assert roomier.grants["InferenceModel default/m"].spare.replicas is None
    assert placed(roomier, "m") == 2  # to take it is another decision


def test_how_many_replicas_fit_is_recorded_before_they_are_requested() -> None:
    short = decision(2, Reason.LIMITED_BY_CAPACITY, desired=9)
    before = snapshot(model("m", maxReplicas=7), nodes=gpus(2), m=short)
    name = "InferenceModel default/m"
    assert reconcile(before, NOON).grants[name].spare.replicas == 0
    roomier = reconcile(replace(before, nodes=gpus(5)), NOON).grants[name]
    assert (roomier.placed, roomier.spare.replicas) == (2, 3)
    assert "of 5 in the pool" in roomier.spare.missing
    assert reconcile(replace(before, nodes=gpus(7)), NOON).grants[name].spare.replicas is None  # maxReplicas fits


def test_what_two_want_is_not_promised_to_both() -> None:
    short = decision(1, Reason.LIMITED_BY_CAPACITY, desired=4)
    first, second = model("one", maxReplicas=4), model("other", maxReplicas=4, priority=1)
    outcome = reconcile(snapshot(first, second, nodes=gpus(5), one=short, other=short), NOON)
    rooms = [outcome.grants[f"InferenceModel default/{name}"].spare.replicas for name in ("one", "other")]
    assert rooms == [0, None]  # of the three that are free the other, which comes first, takes all that it wants


def test_the_last_gpu_goes_to_the_higher_priority() -> None:
    low, high = model("low", maxReplicas=3), model("high", maxReplicas=3, priority=10)
    first = snapshot(low, high, nodes=gpus(3), low=decision(2))
    running = reconcile(first, NOON)
    assert (placed(running, "low"), placed(running, "high")) == (2, 1)
    after = running.after(first)
    contested = reconcile(
        replace(after, decisions=after.decisions | {"InferenceModel default/high": decision(2)}), NOON
    )
    assert (placed(contested, "low"), placed(contested, "high")) == (1, 2)
    missing = contested.grants["InferenceModel default/low"].spare.missing
    assert "it gives way to high, whose priority is 10 and not 0: low needs 1 GPU" in missing
    granted = {"low": decision(1, Reason.LIMITED_BY_CAPACITY, desired=2), "high": decision(2)}
    later = replace(
        contested.after(after), decisions={f"InferenceModel default/{name}": item for name, item in granted.items()}
    )
    assert reconcile(later, NOON).grants["InferenceModel default/low"].spare.missing == missing


def test_what_gave_way_to_an_equal_hears_what_it_lacks() -> None:
    rich, new = model("rich", maxReplicas=3), model("new")
    after = reconcile(snapshot(rich, nodes=gpus(2), rich=decision(2)), NOON).after(
        snapshot(rich, nodes=gpus(2), rich=decision(2))
    )
    contested = reconcile(replace(after, resources=(*after.resources, new)), NOON)
    missing = contested.grants["InferenceModel default/rich"].spare.missing
    assert "rich needs 1 GPU" in missing
    assert "of 2 in the pool" in missing


def test_among_equals_no_one_gives_way() -> None:
    one, other = model("one", maxReplicas=3), model("other", maxReplicas=3)
    first = snapshot(one, other, nodes=gpus(3), one=decision(2))
    after = reconcile(first, NOON).after(first)
    contested = reconcile(
        replace(after, decisions=after.decisions | {"InferenceModel default/other": decision(2)}), NOON
    )
    assert (placed(contested, "one"), placed(contested, "other")) == (2, 1)


def test_what_has_nothing_gets_what_another_has_beyond_its_minimum() -> None:
    rich, new = model("rich", maxReplicas=3), model("new")
    first = snapshot(rich, nodes=gpus(2), rich=decision(2))
    after = reconcile(first, NOON).after(first)
    contested = reconcile(replace(after, resources=(*after.resources, new)), NOON)
    assert (placed(contested, "rich"), placed(contested, "new")) == (1, 1)


def test_the_minimum_gives_way_to_no_one() -> None:
    low, high = model("low", minReplicas=2), model("high", priority=100)
    first = snapshot(low, nodes=gpus(2))
    after = reconcile(first, NOON).after(first)
    contested = reconcile(replace(after, resources=(*after.resources, high)), NOON)
    assert (placed(contested, "low"), placed(contested, "high")) == (2, 0)
    assert reason(contested, "high", ConditionType.PLACED)[0] == "False"


def test_a_pool_that_is_not_there_yet_has_no_grants() -> None:
    assert reconcile(FleetSnapshot(resources=(model("m"),), nodes=(), pools={POOL: PoolSnapshot()}), NOON).grants == {}


def test_changes_inplace_by_scaling_leave_a_model_ready() -> None:
    spec: dict[str, Any] = {"footprint": {"gpuMemory": "4Gi"}, "scaling": {}, "maxBatchSize": 8}
    first = snapshot(model("m", **spec), nodes=gpus(1), m=decision(1))
    outcome = reconcile(first, NOON)
    (step,) = outcome.steps[POOL]
    report = ServerReport("p-0", ready=True, models=(LoadedModel("m", 1, LoadState.READY, ""),), settled=True)
    report = replace(report, takes_requests=True, routes=frozenset({"m"}))
    served = PoolSnapshot(outcome.servers(POOL), (report,), (step.repository,), (step.repository,))
    serving = replace(outcome.after(first), pools={POOL: served})
    assert reason(reconcile(serving, NOON), "m", ConditionType.READY) == ("True", "Serving")
    decided = replace(serving, decisions={"InferenceModel default/m": decision(1, instances=3)})
    assert reason(reconcile(decided, NOON), "m", ConditionType.READY) == ("True", "Serving")
    edited = model("m", **spec | {"maxBatchSize": 16})
    changed = replace(serving, resources=(serving.resources[0], edited))
    assert reason(reconcile(changed, NOON), "m", ConditionType.READY)[0] == "False"


def test_what_went_to_zero_says_which_field_let_it() -> None:
    idle = reconcile(snapshot(model("m", minReplicas=0, scaling={}), nodes=gpus(1), m=decision(0)), NOON)
    condition = status(idle, "m").condition(ConditionType.READY)
    assert condition is not None
    assert (condition.reason, condition.message) == ("ScaledToZero", "minReplicas is 0, so it has no replica")
    stopped = reconcile(snapshot(model("m", replicas=0, scaling={}), nodes=gpus(1), m=decision(0)), NOON)
    condition = status(stopped, "m").condition(ConditionType.READY)
    assert condition is not None
    assert condition.message == "spec.replicas is 0, so it has no replica"
