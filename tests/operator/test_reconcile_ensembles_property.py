"""Ensembles are one unit, whatever is pushed: a server never has one whose steps' versions it lacks."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster
from tests.properties import examples

from argosy.api import Resource
from argosy_agent.contract import RenderedModel

MODELS = ("tokenizer", "small", "large")
ENSEMBLES = {"one": ("tokenizer", "small"), "two": ("tokenizer", "large"), "outer": ("one", "large")}
"""Two that share a model, and one that runs another and shares a model with a third."""


@dataclass
class Fleet:
    """What is declared: the version of each model, and the ensembles with theirs. Each model takes `size` GiB."""

    size: int = 5
    replicas: int = 1
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
        return ensemble(name, *ENSEMBLES[name], version=self.ensembles[name], steps=steps)


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
@examples(12, suppress_health_check=[HealthCheck.too_slow])
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
