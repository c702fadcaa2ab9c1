"""In random histories of rollouts no device is overcommitted, and nothing that serves gives way to a candidate.

The checker counts by itself: the bytes of each version that a server has loaded or reserves, by the sizes that the
history declared.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster
from tests.properties import examples

from argosy.api import InferenceModel, Resource
from argosy.planning.facts import Gpu, Node
from argosy.planning.rollouts.memory import CandidateEvidence
from argosy.rollout.state import PROVING
from argosy.rollout.verdict import Outcome, Verdict

NAMES = ("a", "b", "c")
SIZES = (8, 15, 24, 40)
STEPS = [{"traffic": "10%", "pause": "5s"}, {"traffic": "50%", "pause": "5s"}]
STRATEGIES = ("Auto", "Surge", "Recreate")


@dataclass
class Declared:
    """What is declared: of each model its version, replicas and strategy, and the GiB of every version it had."""

    models: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    sizes: dict[tuple[str, int], int] = field(default_factory=dict)

    def declare(self, name: str, version: int, size: int, replicas: int, strategy: str) -> None:
        self.sizes.setdefault((name, version), size)
        self.models[name] = (version, replicas, strategy)

    def resources(self) -> list[Resource]:
        every = (self._model(name, *spec) for name, spec in self.models.items())
        return [pool(), *every]

    def _model(self, name: str, version: int, replicas: int, strategy: str) -> InferenceModel:
        spec: dict[str, Any] = {"steps": STEPS, "strategy": strategy}
        return model(name, version, self.sizes[name, version], minReplicas=replicas, rollout=spec)


EDITS = st.one_of(
    st.tuples(st.just("declare"), st.sampled_from(NAMES), st.sampled_from(SIZES), st.integers(1, 3)),
    st.tuples(st.just("version"), st.sampled_from(NAMES), st.sampled_from(SIZES), st.integers(2, 4)),
    st.tuples(st.just("replicas"), st.sampled_from(NAMES), st.just(0), st.integers(1, 3)),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just(0), st.just(0)),
    st.tuples(st.just("pass"), st.sampled_from(NAMES), st.just(0), st.just(0)),
    st.tuples(st.just("fail"), st.sampled_from(NAMES), st.just(0), st.just(0)),
    st.tuples(st.just("lose"), st.sampled_from(("n1", "n2")), st.just(0), st.just(0)),
    st.tuples(st.just("forget"), st.just(""), st.just(0), st.just(0)),
)
Edit = tuple[str, str, int, int]


def edit(declared: Declared, cluster: Cluster, change: Edit, strategy: str) -> None:
    what, name, size, number = change
    former = declared.models.get(name)
    if what == "declare" and former is None:
        declared.declare(name, 1, size, number, strategy)
    elif what == "version" and former is not None:
        declared.declare(name, number, size, *former[1:])
    elif what == "replicas" and former is not None:
        declared.models[name] = (former[0], number, former[2])
    elif what == "delete":
        declared.models.pop(name, None)
        declared.sizes = {key: gib for key, gib in declared.sizes.items() if key[0] != name or loaded(cluster, *key)}
    elif what == "lose":
        cluster.lose(name)
    elif what == "forget":
        cluster.forget()


def loaded(cluster: Cluster, name: str, version: int) -> bool:
    return any(version in server.loaded[name].versions for server in cluster.servers.values() if name in server.loaded)


def judge(cluster: Cluster, outcomes: dict[str, Outcome]) -> None:
    """Let the analyses of models' present steps come to verdicts."""
    assert cluster.outcome is not None
    evidence = {}
    for identity, member in cluster.outcome.rollouts.members.items():
        outcome = outcomes.get(member.declared.name)
        if outcome is not None:
            verdict = Verdict(outcome, member.state.analysis, "ErrorRate", "")
            evidence[identity] = CandidateEvidence(verdict, 1000)
    cluster.snapshot = replace(cluster.snapshot, evidence=evidence)


def check_plan(cluster: Cluster, declared: Declared) -> None:
    """Check that each device has memory for all that the plan puts there, and for both revisions of each rollout."""
    assert cluster.outcome is not None
    capacity = {(node.name, gpu.index): gpu.memory for node in cluster.nodes for gpu in node.gpus}
    used: Counter[tuple[str, int]] = Counter()
    rollouts = cluster.outcome.rollouts.members
    for server in cluster.outcome.plan.pools[0].servers:
        cpu = next(gpu.index for node in cluster.nodes if node.name == server.node for gpu in node.gpus)
        for placement in server.placements:
            rollout = rollouts.get(f"InferenceModel default/{placement.model}")
            versions = {placement.version}
            if rollout is not None and rollout.state.stable is not None and rollout.state.candidate is not None:
                chosen = rollout.chosen
                in_place = chosen is not None and chosen.strategy is not None and chosen.loads_both
                if in_place and rollout.state.phase in PROVING and placement.unreserved is None:
                    versions |= set(rollout.action.keep)
            size = sum(declared.sizes[placement.model, version] for version in versions) * GIB
            for gpu in placement.gpus or (cpu,):
                used[server.node, gpu] += size
    over = {device: bytes_ for device, bytes_ in used.items() if bytes_ > capacity[device]}
    assert not over, f"{over}: {cluster.outcome.plan}"


def check_loaded(cluster: Cluster, declared: Declared) -> None:
    """Check that no device has more loaded than it has memory."""
    assert not cluster.overcommitted({key: size * GIB for key, size in declared.sizes.items()})


@given(
    sizes=st.lists(st.sampled_from(SIZES), min_size=1, max_size=3),
    replicas=st.integers(1, 3),
    strategy=st.sampled_from(STRATEGIES),
    changes=st.lists(st.tuples(EDITS, st.integers(1, 25)), min_size=1, max_size=8),
    slow=st.integers(1, 4),
    gpus=st.lists(st.integers(1, 2), min_size=1, max_size=3),
)
@examples(8, suppress_health_check=[HealthCheck.too_slow])
def test_no_gpu_is_overcommitted_and_nothing_that_serves_gives_way_to_a_candidate(
    sizes: list[int],
    replicas: int,
    strategy: str,
    changes: list[tuple[Edit, int]],
    slow: int,
    gpus: list[int],
) -> None:
    cluster = Cluster(tuple(gpu_node(f"n{at}", count) for at, count in enumerate(gpus)), timedelta(seconds=slow))
    declared = Declared()
    for name, size in zip(NAMES, sizes, strict=False):
        declared.declare(name, 1, size, replicas, strategy)
    for _ in range(25):
        cluster.tick(declared.resources())
    for change, seconds in changes:
        edit(declared, cluster, change, strategy)
        outcomes = {change[1]: Outcome.SUCCESSFUL if change[0] == "pass" else Outcome.FAILED}
        resources = declared.resources()
        for second in range(seconds):
            judge(cluster, outcomes if change[0] in ("pass", "fail") else {})
            before, placed = cluster.routed(), placed_models(cluster)
            cluster.tick(resources)
            note(f"{change} +{second}: {cluster.routed()}")
            check_plan(cluster, declared)
            check_loaded(cluster, declared)
            if change[0] != "lose" and second > 0 and strategy != "Recreate":
                lost = {name for name in before if name in declared.models and not cluster.routed().get(name)}
                assert not lost, f"{lost} no longer answer after {change}"
                assert placed <= placed_models(cluster), f"{placed - placed_models(cluster)} lost their place"


def placed_models(cluster: Cluster) -> set[str]:
    assert cluster.outcome is not None
    (plan,) = cluster.outcome.plan.pools
    return {placement.model for server in plan.servers for placement in server.placements}


@pytest.mark.parametrize("memory", [40, 64, 100])
@given(
    sizes=st.lists(st.sampled_from(SIZES), min_size=1, max_size=3),
    changes=st.lists(st.tuples(EDITS, st.integers(1, 25)), min_size=1, max_size=6),
)
@examples(3, suppress_health_check=[HealthCheck.too_slow])
def test_no_host_without_gpus_is_overcommitted(memory: int, sizes: list[int], changes: list[tuple[Edit, int]]) -> None:
    cluster = Cluster((Node("n0", (Gpu(0, memory * GIB, is_cpu=True),)),), timedelta(seconds=2))
    declared = Declared()
    for name, size in zip(NAMES, sizes, strict=False):
        declared.declare(name, 1, size, 1, "Auto")
    for _ in range(25):
        cluster.tick(declared.resources())
    for change, seconds in changes:
        edit(declared, cluster, change, "Auto")
        outcomes = {change[1]: Outcome.SUCCESSFUL if change[0] == "pass" else Outcome.FAILED}
        for _ in range(seconds):
            judge(cluster, outcomes if change[0] in ("pass", "fail") else {})
            cluster.tick(declared.resources())
            check_plan(cluster, declared)
            check_candidates(cluster, declared, memory)


def check_candidates(cluster: Cluster, declared: Declared, memory: int) -> None:
    """Check that a host has memory for stable revisions and candidates that are loaded together.

    What leaves is not counted: memory of hosts is only planned.
    """
    assert cluster.outcome is not None
    members = cluster.outcome.rollouts.members.values()
    retained = {one.declared.name: one.action.keep for one in members if one.state.phase in PROVING}
    for server in cluster.servers.values():
        there = [(name, version) for name, one in server.loaded.items() for version in one.versions]
        proven = [key for key in there if key[1] in retained.get(key[0], ()) and key[0] in declared.models]
        assert sum(declared.sizes[key] for key in proven) <= memory
