"""Ensembles are one unit, whatever is pushed: a server never has one whose steps' versions it lacks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from google.protobuf import text_format
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster
from tests.properties import examples
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api import Resource
from argosy.planning.rollouts.memory import CandidateEvidence
from argosy.rollout.verdict import Outcome as RolloutOutcome
from argosy.rollout.verdict import Verdict
from argosy_agent.contract import RenderedModel
from argosy_runtime.modelconfig.parameters.traffic import version_traffic

MODELS = ("tokenizer", "small", "large")
ENSEMBLES = {"one": ("tokenizer", "small"), "two": ("tokenizer", "large"), "outer": ("one", "large")}
"""Two that share a model, and one that runs another and shares a model with a third."""


@dataclass
class Fleet:
    """What is declared: the version of each model, and the ensembles with theirs. Each model takes `size` GiB. The
    revisions of `released` ensembles are released in steps.
    """

    size: int = 5
    replicas: int = 1
    released: frozenset[str] = frozenset()
    versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MODELS, 1))
    ensembles: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENSEMBLES, 1))

    def resources(self) -> list[Resource]:
        """Return all resources."""
        models = [model(name, version, self.size, minReplicas=self.replicas) for name, version in self.versions.items()]
        return [pool(), *models, *(self._ensemble(name) for name in self.ensembles)]

    def push(self, change: tuple[str, str, int]) -> None:
        """Make one change."""
        what, name, number = change
        if what == "version":
            self.versions[name] = number
        elif what == "ensemble" and name in self.ensembles:
            self.ensembles[name] = number
        elif what == "delete":
            self.ensembles.pop(name, None)
            if name == "one":
                self.ensembles.pop("outer", None)
        elif what == "add":
            self.ensembles.setdefault(name, number)
            if name == "outer":
                self.ensembles.setdefault("one", number)

    def _ensemble(self, name: str) -> Resource:
        steps: list[dict[str, Any]] = []
        for at, step in enumerate(ENSEMBLES[name]):
            first, last = ("T0", "T2") if step in ENSEMBLES else ("X", "Y")
            steps.append({"model": step, "inputs": {first: f"T{at}"}, "outputs": {last: f"T{at + 1}"}})
        rollout = {"steps": [{"traffic": "10%", "pause": "5s"}]} if name in self.released else None
        return ensemble(name, *ENSEMBLES[name], version=self.ensembles[name], steps=steps, rollout=rollout)


CHANGES = st.one_of(
    st.tuples(st.just("version"), st.sampled_from(MODELS), st.integers(1, 4)),
    st.tuples(st.just("ensemble"), st.sampled_from(tuple(ENSEMBLES)), st.integers(1, 3)),
    st.tuples(st.sampled_from(("delete", "add")), st.sampled_from(tuple(ENSEMBLES)), st.integers(1, 3)),
)


def lacking(models: Iterable[RenderedModel]) -> list[str]:
    """Return the ensembles that name a version of a step that is not among the models."""
    there = {model.name: model for model in models}
    return [
        f"version {version} of {model.name} lacks {step}:{at}"
        for model in there.values()
        for version in model.versions
        for step, at in model.steps_of(version).items()
        if step not in there or at not in there[step].versions
    ]


@given(
    size=st.sampled_from((5, 15, 24)),
    replicas=st.integers(1, 2),
    slow=st.integers(1, 4),
    refuses=st.frozensets(st.tuples(st.sampled_from(MODELS), st.integers(2, 4)), max_size=2),
    pushes=st.lists(st.tuples(CHANGES, st.integers(0, 12)), min_size=1, max_size=8),
)
@examples(6, suppress_health_check=[HealthCheck.too_slow])
def test_no_server_ever_has_an_ensemble_without_the_versions_of_its_steps(
    size: int,
    replicas: int,
    slow: int,
    refuses: frozenset[tuple[str, int]],
    pushes: list[tuple[tuple[str, str, int], int]],
) -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")), timedelta(seconds=slow), refuses)
    fleet = Fleet(size, replicas)
    cluster.settle(fleet.resources())
    for change, seconds in pushes:
        fleet.push(change)
        for _ in range(seconds):
            cluster.tick(fleet.resources())
            for server in cluster.servers.values():
                assert not lacking(server.step.repository.models), f"rendered, after {change}"
                assert not lacking(server.loaded.values()), f"loaded, after {change}"
    cluster.refuses = frozenset()
    cluster.settle(fleet.resources())


PUSHES = st.one_of(
    CHANGES,
    st.tuples(st.sampled_from(("pass", "fail")), st.sampled_from(tuple(ENSEMBLES)), st.just(0)),
    st.tuples(st.just("forget"), st.just(""), st.just(0)),
)


def judge(cluster: Cluster, name: str, outcome: RolloutOutcome) -> None:
    """Let the analysis of an ensemble's present step come to a verdict."""
    assert cluster.outcome is not None
    rollout = cluster.outcome.rollouts.members.get(f"Ensemble default/{name}")
    if rollout is not None:
        verdict = Verdict(outcome, rollout.state.analysis, "ErrorRate", "")
        evidence = {**cluster.snapshot.evidence, f"Ensemble default/{name}": CandidateEvidence(verdict, 1000)}
        cluster.snapshot = replace(cluster.snapshot, evidence=evidence)


@given(
    released=st.frozensets(st.sampled_from(tuple(ENSEMBLES)), min_size=1),
    replicas=st.integers(1, 2),
    refuses=st.frozensets(st.tuples(st.sampled_from(MODELS), st.integers(2, 4)), max_size=1),
    pushes=st.lists(st.tuples(PUSHES, st.integers(1, 25)), min_size=1, max_size=8),
)
@examples(6, suppress_health_check=[HealthCheck.too_slow])
def test_a_revision_of_an_ensemble_runs_one_set_of_versions_as_long_as_it_exists(
    released: frozenset[str],
    replicas: int,
    refuses: frozenset[tuple[str, int]],
    pushes: list[tuple[tuple[str, str, int], int]],
) -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")), timedelta(seconds=2), refuses)
    fleet = Fleet(5, replicas, released=released)
    cluster.settle(fleet.resources())
    for change, seconds in pushes:
        if change[0] in ("pass", "fail"):
            judge(cluster, change[1], RolloutOutcome.SUCCESSFUL if change[0] == "pass" else RolloutOutcome.FAILED)
        elif change[0] == "forget":
            cluster.forget()
        else:
            fleet.push(change)
        for _ in range(seconds):
            before = {name: dict(server.loaded) for name, server in cluster.servers.items()}
            cluster.tick(fleet.resources())
            for name, server in cluster.servers.items():
                assert not lacking(server.step.repository.models), f"rendered, after {change}"
                assert not lacking(server.loaded.values()), f"loaded, after {change}"
                assert not remade(before.get(name, {}), server.loaded), f"after {change}"
                assert not divided_wrong(server.loaded), f"after {change}"


def remade(before: Mapping[str, RenderedModel], now: Mapping[str, RenderedModel]) -> list[str]:
    """Return the revisions of ensembles that run other versions than a moment before, under the same number."""
    return [
        f"{name}:{version}"
        for name in before.keys() & now.keys()
        for version in before[name].versions.keys() & now[name].versions.keys()
        if before[name].versions[version].own is not None and now[name].versions[version].own is not None
        if before[name].steps_of(version) != now[name].steps_of(version)
    ]


def divided_wrong(loaded: Mapping[str, RenderedModel]) -> list[str]:
    """Return the ensembles whose requests are divided among versions of which none is loaded."""
    texts = {
        name: version_traffic(text_format.Parse(model.config_text, ModelConfig())) for name, model in loaded.items()
    }
    return [
        name
        for name, traffic in texts.items()
        if traffic is not None
        and not {at for at, weight in traffic.weights.items() if weight} & loaded[name].versions.keys()
    ]
