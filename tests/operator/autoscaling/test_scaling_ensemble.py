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
"""Of a rate, what there is for it, the time, and the seconds of a batch."""


def in_batches(rate: float, allocation: Allocation, now: datetime, fixed: float) -> Signals:
    return measured(rate, allocation, now, fixed, fixed / 2)


def three_rows(rate: float, allocation: Allocation, now: datetime, fixed: float) -> Signals:
    """Of each request."""
    found = measured(3 * rate, allocation, now, fixed, fixed / 2)
    return replace(found, arrivals=rate, completions=(found.completions or 0.0) / 3, pending=(found.pending or 0.0) / 3)


def rounds(
    rate: float, count: int, instances: int = 1, without: str = "", served: Served = in_batches, max_batch: int = 8
) -> list[MemberDecision]:
    """Decisions in a row under a load; `without`: the model that nobody measures; `served`: what its models measure."""
    return remembered(rate, count, instances, without, served, max_batch)[0]


def remembered(
    rate: float, count: int, instances: int = 1, without: str = "", served: Served = in_batches, max_batch: int = 8
) -> tuple[list[MemberDecision], MemberMemory]:
    """The same, with what is known in the end."""
    policy = replace(POLICY, targets=Targets({"p99": 0.3}))
    stage_policy = Policy(Bounds(max_instances=instances, max_batch=max_batch))
    allocation, memory, now, decisions = Allocation(), MemberMemory(), START, []
    stages = {name: Allocation() for name in FIXED}
    for _ in range(count):
        signals = {
            name: served(rate, structs.replace(each, replicas=allocation.replicas), now, FIXED[name])
            for name, each in stages.items()
        }
        whole = Signals(now, 15.0, servers=allocation.replicas, arrivals=rate, completions=rate, pending=0.0)
        inputs = {
            name: Stage(stage_policy, each, None if name == without else signals[name]) for name, each in stages.items()
        }
        found, memory = decide(policy, allocation, whole, SpareCapacity(), memory, now, stages=inputs)
        allocation, stages = found.own.allocation, {name: each.allocation for name, each in found.stages.items()}
        now += timedelta(seconds=EVERY_S)
        decisions.append(found)
    return decisions, memory


def test_the_limiting_model_gets_instances() -> None:
    found = rounds(130, 20, instances=4)[-1]
    assert found.limiting == "classifier"
    assert found.own.allocation.replicas == 1
    assert found.stages["classifier"].allocation.instances == 2
    assert found.stages["tokenizer"].allocation.instances == 1


def test_without_instances_to_add_the_ensemble_gets_replicas() -> None:
    found = rounds(300, 20)[-1]
    assert found.own.allocation.replicas > 2
    assert found.own.message.startswith("Stays at")
    assert "classifier: 300 requests/s come" in found.own.message
    assert {each.allocation.replicas for each in found.stages.values()} == {found.own.allocation.replicas}


def test_a_constant_load_settles() -> None:
    late = rounds(300, 60, instances=4)[20:]
    assert {each.own.allocation for each in late} == {late[0].own.allocation}
    assert {each.stages["classifier"].allocation for each in late} == {late[0].stages["classifier"].allocation}


def test_a_model_that_nobody_measures_says_so_and_takes_nothing_away() -> None:
    found = rounds(130, 20, without="tokenizer")[-1]
    assert found.stages["tokenizer"].reason == Reason.NO_SIGNALS
    assert found.own.reason != Reason.NO_SIGNALS


def test_of_the_ensemble_as_a_whole_requests_are_remembered_whatever_rows_they_are_of_its_models() -> None:
    decisions, memory = remembered(100, 60, served=three_rows)
    whole, limiting = memory.own, memory.stages[decisions[-1].limiting]
    assert limiting.estimates.rows == pytest.approx(3.0, rel=0.02)
    assert whole.expected == pytest.approx(100.0, rel=0.02)
    assert whole.holds == pytest.approx(limiting.holds, rel=0.02)
