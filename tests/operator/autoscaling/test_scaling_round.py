"""One round of a pool with several members."""

from dataclasses import replace
from datetime import timedelta
from math import isfinite
from typing import Any

import pytest
from tests.operator.autoscaling.loads import START, measured
from tests.operator.planning import declared

from argosy.api import Ensemble, InferenceModel
from argosy.api.conditions import Reason
from argosy.autoscaling.decide import decide
from argosy.autoscaling.decision import Allocation, AllocationChange, SpareCapacity
from argosy.autoscaling.memory import MemberMemory, Memory
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.pool import pool_round
from argosy.autoscaling.pool.grants import Grant
from argosy.autoscaling.pool.memory import PoolMemory
from argosy.autoscaling.pool.policies import policies
from argosy.autoscaling.pool.pool_round import PoolInputs, decide_pool

ONE = Allocation()


class IterationCounter(dict[tuple[str, str], float]):
    """Queries' values, and how often they were iterated."""

    times = 0

    def items(self) -> Any:
        self.times += 1
        return super().items()


def inputs_of(*names: str) -> PoolInputs:
    """Return inputs with these models, each with a query of its own and one replica."""
    query = {"name": "jobs", "query": "jobs", "target": 10}
    models = [declared.model(name, maxReplicas=9, scaling={"targets": {"queries": [query]}}) for name in names]
    resources = [declared.pool(), *models]
    members = tuple(resource for resource in resources if isinstance(resource, InferenceModel | Ensemble))
    allocations = {resource.identity: ONE for resource in members}
    return PoolInputs(members, policies(resources, START), allocations, activator_error="")


def report_of(memory: PoolMemory, name: str) -> tuple[int, str]:
    decision = memory.reports[f"InferenceModel default/{name}"].decision
    return decision.allocation.replicas, decision.message


def test_a_model_follows_its_own_queries_and_reports_their_errors() -> None:
    signals = PoolSignals(
        {name: measured(1, ONE, START) for name in "abc"},
        queries={("a", "jobs"): 45.0, ("b", "jobs"): 25.0},
        query_errors={("c", "jobs"): "it has no value"},
    )
    memory = decide_pool(inputs_of("a", "b", "c"), signals, PoolMemory(), START)
    replicas = {name: report_of(memory, name)[0] for name in "abc"}
    assert replicas == {"a": 5, "b": 3, "c": 1}
    troubled = [name for name in "abc" if "query jobs cannot be used: it has no value" in report_of(memory, name)[1]]
    assert troubled == ["c"]


def test_spare_capacity_is_used_once_until_the_next_plan() -> None:
    few = inputs_of("a")
    (name,) = few.policies
    short = replace(
        few, grants={name: Grant(requested=1, placed=1, spare=SpareCapacity(replicas=2, missing="no GPU is free"))}
    )
    memory, now = PoolMemory(), START
    for expected in (3, 3, 3):
        signals = PoolSignals({"a": measured(1, ONE, now)}, queries={("a", "jobs"): 85.0})
        memory = decide_pool(short, signals, memory, now)
        assert report_of(memory, "a")[0] == expected
        now += timedelta(seconds=5)
    assert report_of(memory, "a")[1].endswith("no room for 6 more; no GPU is free.")
    planned = replace(
        few, grants={name: Grant(requested=3, placed=3, spare=SpareCapacity(replicas=1, missing="no GPU is free"))}
    )
    memory = decide_pool(planned, PoolSignals({"a": measured(1, ONE, now)}, queries={("a", "jobs"): 85.0}), memory, now)
    assert report_of(memory, "a")[0] == 4


@pytest.mark.parametrize("value", [1e25, 1.7e308])
def test_a_query_with_an_absurd_value_asks_for_the_maximum(value: float) -> None:
    queries = {("a", "jobs"): value, ("b", "jobs"): 25.0}
    signals = PoolSignals({name: measured(1, ONE, START) for name in "ab"}, queries=queries)
    memory = decide_pool(inputs_of("a", "b"), signals, PoolMemory(), START)
    assert [report_of(memory, name)[0] for name in ("a", "b")] == [9, 3]
    assert all(report.decision.desired < 2**63 for report in memory.reports.values())
    assert all(isfinite(report.decision.observed or 0.0) for report in memory.reports.values())


def test_a_member_without_a_decision_keeps_its_allocation_and_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def sometimes(policy: Any, allocation: Any, signals: Any, *arguments: Any, **named: Any) -> Any:
        if signals is None:
            raise OverflowError("too large")
        return decide(policy, allocation, signals, *arguments, **named)

    monkeypatch.setattr(pool_round, "decide", sometimes)
    signals = {"b": measured(1, ONE, START)}
    queries = {("a", "jobs"): 45.0, ("b", "jobs"): 25.0}
    memory = decide_pool(inputs_of("a", "b"), PoolSignals(signals, queries=queries), PoolMemory(), START)
    assert report_of(memory, "b")[0] == 3
    message = "Stays at 1 replica: a fault of Argosy's own, please report it: OverflowError: too large."
    assert report_of(memory, "a") == (1, message)
    assert "InferenceModel default/a: nothing can be decided" in caplog.text
    signals["a"] = measured(1, ONE, START)
    memory = decide_pool(inputs_of("a", "b"), PoolSignals(signals, queries=queries), memory, START)
    assert report_of(memory, "a")[0] == 5


def test_an_ensemble_that_cannot_be_decided_on_keeps_what_its_models_have(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise ArithmeticError("nan")

    monkeypatch.setattr(pool_round, "decide", fails)
    models = [declared.model("m"), declared.ensemble("e", "m", maxReplicas=9)]
    resources = [declared.pool(), *models]
    members = tuple(resource for resource in resources if isinstance(resource, InferenceModel | Ensemble))
    two = {resource.identity: Allocation(2) for resource in members}
    inputs = PoolInputs(members, policies(resources, START), two)
    change = AllocationChange(START, ONE, Allocation(2), Reason.SCALED_UP, "more load")
    before = MemberMemory(Memory(change=change, expected=3.0), {"m": Memory(change=change, holds=4.0)})
    memory = decide_pool(inputs, PoolSignals(), PoolMemory({"Ensemble default/e": before}), START)
    assert {name: report.decision.allocation.replicas for name, report in memory.reports.items()} == dict.fromkeys(
        ("Ensemble default/e", "InferenceModel default/m"), 2
    )
    assert {report.decision.change for report in memory.reports.values()} == {change}
    left = Memory(change=change)
    assert memory.members == {"Ensemble default/e": MemberMemory(left, {"m": left})}


def test_members_look_up_their_queries() -> None:
    names = [f"m{number}" for number in range(20)]
    queries = IterationCounter({(name, "jobs"): 45.0 for name in names})
    signals = PoolSignals({name: measured(1, ONE, START) for name in names}, queries=queries)
    memory = decide_pool(inputs_of(*names), signals, PoolMemory(), START + timedelta(seconds=1))
    assert [report_of(memory, name)[0] for name in names] == [5] * 20
    assert queries.times == 0
