"""An ensemble: the model that limits gets instances, all of them together replicas."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from msgspec import structs
from tests.operator.autoscaling.loads import EVERY_S, POLICY, START, measured

from argosy.api.conditions import Reason
from argosy.autoscaling.decide import MemberDecision, decide
from argosy.autoscaling.decision import Allocation, SpareCapacity
from argosy.autoscaling.memory import MemberMemory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Bounds, Policy, Targets
from argosy.autoscaling.stage import Stage

FIXED = {"tokenizer": 0.001, "classifier": 0.012}
"""Seconds of a batch, and half of them for each row."""
Served = Callable[[float, Allocation, datetime, float], Signals]
"""Signals by rate, allocation, time and the seconds of a batch."""


def in_batches(rate: float, allocation: Allocation, now: datetime, fixed: float) -> Signals:
    return measured(rate, allocation, now, fixed, fixed / 2)


def three_rows(rate: float, allocation: Allocation, now: datetime, fixed: float) -> Signals:
    """Return signals where each request has three rows."""
    result = measured(3 * rate, allocation, now, fixed, fixed / 2)
    return replace(
        result, arrivals=rate, completions=(result.completions or 0.0) / 3, pending=(result.pending or 0.0) / 3
    )


def rounds(
    rate: float, count: int, instances: int = 1, without: str = "", served: Served = in_batches, max_batch: int = 8
) -> list[MemberDecision]:
    """Return decisions in a row under a load; `without`: the unmeasured model; `served`: the signals of its models."""
    return rounds_and_memory(rate, count, instances, without, served, max_batch)[0]


def rounds_and_memory(
    rate: float, count: int, instances: int = 1, without: str = "", served: Served = in_batches, max_batch: int = 8
) -> tuple[list[MemberDecision], MemberMemory]:
    """Return the same, with the memory in the end."""
    policy = replace(POLICY, targets=Targets({"p99": 0.3}))
    stage_policy = Policy(Bounds(max_instances=instances, max_batch=max_batch))
    allocation, memory, now, decisions = Allocation(), MemberMemory(), START, []
    stages = {name: Allocation() for name in FIXED}
    for _ in range(count):
        signals = {
            name: served(rate, structs.replace(stage, replicas=allocation.replicas), now, FIXED[name])
            for name, stage in stages.items()
        }
        total = Signals(now, 15.0, servers=allocation.replicas, arrivals=rate, completions=rate, pending=0.0)
        inputs = {
            name: Stage(stage_policy, stage, None if name == without else signals[name])
            for name, stage in stages.items()
        }
        result, memory = decide(policy, allocation, total, SpareCapacity(), memory, now, stages=inputs)
        allocation, stages = result.own.allocation, {name: stage.allocation for name, stage in result.stages.items()}
        now += timedelta(seconds=EVERY_S)
        decisions.append(result)
    return decisions, memory


def test_the_limiting_model_gets_instances() -> None:
    result = rounds(130, 20, instances=4)[-1]
    assert result.own.allocation.replicas == 1
    assert result.stages["classifier"].allocation.instances == 2
    assert result.stages["tokenizer"].allocation.instances == 1


def test_without_instances_to_add_the_ensemble_gets_replicas() -> None:
    result = rounds(300, 20)[-1]
    assert result.own.allocation.replicas > 2
    assert result.own.message.startswith("Stays at")
    assert "classifier: 300 requests/s come" in result.own.message
    assert {stage.allocation.replicas for stage in result.stages.values()} == {result.own.allocation.replicas}


def test_a_constant_load_settles() -> None:
    settled = rounds(300, 60, instances=4)[20:]
    assert {result.own.allocation for result in settled} == {settled[0].own.allocation}
    assert {result.stages["classifier"].allocation for result in settled} == {
        settled[0].stages["classifier"].allocation
    }


def test_an_unmeasured_model_says_so_and_takes_nothing_away() -> None:
    result = rounds(130, 20, without="tokenizer")[-1]
    assert result.stages["tokenizer"].reason == Reason.NO_SIGNALS
    assert result.own.reason != Reason.NO_SIGNALS


@pytest.mark.parametrize("partly", ["tokenizer", "classifier"])
def test_a_model_with_an_unmeasured_server_takes_no_replica_away(partly: str) -> None:
    policy = replace(POLICY, targets=Targets({"p99": 0.3}))
    memory, now, allocation = MemberMemory(), START, Allocation(9)
    for _ in range(30):
        total = Signals(now, 15.0, servers=9, arrivals=10.0, completions=10.0, pending=0.0)
        parts = {name: in_batches(10.0, Allocation(8), now, FIXED[name]) for name in FIXED}
        parts[partly] = Signals(now, 15.0, servers=8, unmeasured=1)
        stages = {name: Stage(Policy(Bounds(max_batch=8)), Allocation(9), signals) for name, signals in parts.items()}
        result, memory = decide(policy, allocation, total, SpareCapacity(), memory, now, stages=stages)
        allocation, now = result.own.allocation, now + timedelta(seconds=EVERY_S)
    assert allocation.replicas == 9


def test_the_ensemble_counts_requests_and_its_models_rows() -> None:
    _, memory = rounds_and_memory(100, 60, served=three_rows)
    own, limiting = memory.own, memory.stages["classifier"]
    assert limiting.estimates.rows == pytest.approx(3.0, rel=0.02)
    assert own.expected == pytest.approx(100.0, rel=0.02)
    assert own.holds == pytest.approx(limiting.holds, rel=0.02)
