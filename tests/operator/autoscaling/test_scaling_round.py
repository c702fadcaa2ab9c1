"""One round of a pool with several members."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.operator.autoscaling.loads import START, measured
from tests.operator.planning import declared

from argosy.api import Ensemble, InferenceModel
from argosy.autoscaling.decision import Allocation, SpareCapacity
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.pool.grants import Grant
from argosy.autoscaling.pool.inputs import PoolInputs, PoolMemory
from argosy.autoscaling.pool.pool_round import decide_pool
from argosy.autoscaling.pool.scaled_resources import policies

ONE = Allocation()


class Counted(dict[tuple[str, str], float]):
    """Queries' values, and how often somebody went through all of them."""

    times = 0

    def items(self) -> Any:
        self.times += 1
        return super().items()


def scene(*names: str) -> PoolInputs:
    """Models that follow a query each, with one replica."""
    query = {"name": "jobs", "query": "jobs", "target": 10}
    models = [declared.model(name, maxReplicas=9, scaling={"targets": {"queries": [query]}}) for name in names]
    resources = [declared.pool(), *models]
    members = tuple(each for each in resources if isinstance(each, InferenceModel | Ensemble))
    allocations = {each.identity: ONE for each in members}
    return PoolInputs(members, policies(resources, START), allocations, unheld="")


def told(memory: PoolMemory, name: str) -> tuple[int, str]:
    decision = memory.reports[f"InferenceModel default/{name}"].decision
    return decision.allocation.replicas, decision.message


def test_each_follows_its_own_queries_and_tells_its_own_troubles() -> None:
    signals = PoolSignals(
        {name: measured(1, ONE, START) for name in "abc"},
        queries={("a", "jobs"): 45.0, ("b", "jobs"): 25.0},
        query_errors={("c", "jobs"): "it has no value"},
    )
    memory = decide_pool(scene("a", "b", "c"), signals, PoolMemory(), START)
    replicas = {name: told(memory, name)[0] for name in "abc"}
    assert replicas == {"a": 5, "b": 3, "c": 1}
    troubled = [name for name in "abc" if "query jobs cannot be used: it has no value" in told(memory, name)[1]]
    assert troubled == ["c"]


def test_room_that_was_taken_is_not_there_again_until_the_next_plan() -> None:
    few = scene("a")
    (name,) = few.policies
    short = replace(
        few, grants={name: Grant(requested=1, placed=1, spare=SpareCapacity(replicas=2, missing="no GPU is free"))}
    )
    memory, now = PoolMemory(), START
    for expected in (3, 3, 3):
        signals = PoolSignals({"a": measured(1, ONE, now)}, queries={("a", "jobs"): 85.0})
        memory = decide_pool(short, signals, memory, now)
        assert told(memory, "a")[0] == expected
        now += timedelta(seconds=5)
    assert told(memory, "a")[1].endswith("no room for 6 more; no GPU is free.")
    planned = replace(
        few, grants={name: Grant(requested=3, placed=3, spare=SpareCapacity(replicas=1, missing="no GPU is free"))}
    )
    memory = decide_pool(planned, PoolSignals({"a": measured(1, ONE, now)}, queries={("a", "jobs"): 85.0}), memory, now)
    assert told(memory, "a")[0] == 4


def test_queries_are_gone_through_once_however_many_members_there_are() -> None:
    names = [f"m{number}" for number in range(20)]
    queries = Counted({(name, "jobs"): 45.0 for name in names})
    signals = PoolSignals({name: measured(1, ONE, START) for name in names}, queries=queries)
    memory = decide_pool(scene(*names), signals, PoolMemory(), START + timedelta(seconds=1))
    assert [told(memory, name)[0] for name in names] == [5] * 20
    assert queries.times == 1
