"""The one function of both shells, driven as a shell drives it: against servers that load a little at a time."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import examples

from argosy.api.documents import Resource, parse_documents
from argosy.api.problems import Problem
from argosy.planning.facts import Gpu, Node, ServerReport
from argosy.reconcile import RoundOutcome, reconcile
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract import LoadedModel, LoadState, RenderedModel, RenderedRepository

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODE = Node("laptop", (Gpu(0, 64 << 30, is_cpu=True),))

MANIFESTS = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {{name: pool}}
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {{name: one}}
spec:
  {{poolRef: {{name: pool}}, modelFormat: {{name: python}}, version: {one}, storageUri: "s3://b/one/{one}",
  {tensors}, {policy}}}
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {{name: two}}
spec:
  {{poolRef: {{name: pool}}, modelFormat: {{name: python}}, version: {two}, storageUri: "s3://b/two/{two}", {tensors}}}
---
apiVersion: argosy.dev/v1alpha1
kind: Ensemble
metadata: {{name: pipe}}
spec:
  poolRef: {{name: pool}}
  inputs: [{{name: A, dataType: TYPE_FP32, dims: [1]}}]
  outputs: [{{name: C, dataType: TYPE_FP32, dims: [1]}}]
  steps:
  - {{model: one, inputs: {{X: A}}, outputs: {{Y: B}}}}
  - {{model: two, inputs: {{X: B}}, outputs: {{Y: C}}}}
"""
TENSORS = "inputs: [{name: X, dataType: TYPE_FP32, dims: [1]}], outputs: [{name: Y, dataType: TYPE_FP32, dims: [1]}]"


def declared(one: int, two: int, policy: str = "versionPolicy: null") -> list[Resource]:
    """Return the manifests with these versions."""
    resources, problems = parse_documents(
        MANIFESTS.format(one=one, two=two, tensors=TENSORS, policy=policy), "all.yaml"
    )
    assert problems == []
    return resources


@dataclass
class Shell:
    """A server that loads what it is told, one model at a time, and the memory of what was decided."""

    snapshot: FleetSnapshot = field(default_factory=lambda: FleetSnapshot((), (NODE,)))
    loaded: dict[str, RenderedModel] = field(default_factory=dict)
    refuses: frozenset[tuple[str, int]] = frozenset()

    def decide(self, resources: list[Resource]) -> RoundOutcome:
        """Run one round, up to what should be loaded."""
        models = [
            LoadedModel(name, version, LoadState.READY)
            for name, model in self.loaded.items()
            for version in model.versions
        ]
        routes = frozenset(model.model for model in models)
        report = ServerReport(
            "pool-0", True, tuple(models), "http://localhost:8000", takes_requests=True, routes=routes
        )
        have = RenderedRepository("pool-0", tuple(self.loaded.values()))
        repositories = (have,) if self.loaded else ()
        pool = replace(self.snapshot.pool("default/pool"), reports=(report,), repositories=repositories)
        snapshot = replace(self.snapshot, resources=tuple(resources), pools={"default/pool": pool})
        outcome = reconcile(snapshot, NOW)
        self.snapshot = outcome.after(snapshot)
        return outcome

    def load(self, outcome: RoundOutcome, most: int = 99) -> None:
        """Load `most` of the models that differ, steps first; a version that is refused leaves its model as it was."""
        (step,) = outcome.steps["default/pool"]
        repository = step.repository
        for model in repository.models:
            refused = any((model.name, version) in self.refuses for version in model.versions)
            if most and not refused and self.loaded.get(model.name) != model:
                self.loaded[model.name] = model
                most -= 1

    def versions(self, model: str) -> list[int]:
        """Return the loaded versions of a model."""
        return sorted(self.loaded[model].versions)


def settle(shell: Shell, resources: list[Resource]) -> RoundOutcome:
    """Run rounds until nothing changes."""
    for _ in range(12):
        before = dict(shell.loaded)
        outcome = shell.decide(resources)
        shell.load(outcome)
        if shell.loaded == before:
            return outcome
    raise AssertionError("it does not settle")


def test_the_old_version_stays_until_the_ensemble_has_moved() -> None:
    shell = Shell()
    settle(shell, declared(1, 1))
    assert shell.loaded["pipe"].steps == {"one": 1, "two": 1}
    steps = []
    for _ in range(4):
        shell.load(shell.decide(declared(2, 1)))
        steps.append((shell.versions("one"), dict(shell.loaded["pipe"].steps)["one"]))
    assert steps == [([1, 2], 1), ([1, 2], 2), ([2], 2), ([2], 2)]


def test_a_version_that_does_not_load_leaves_everything_as_it_was() -> None:
    shell = Shell(refuses=frozenset({("one", 2)}))
    settle(shell, declared(1, 1))
    settle(shell, declared(2, 2))
    assert shell.versions("one") == [1]
    assert shell.loaded["pipe"].steps == {"one": 1, "two": 1}
    assert shell.versions("two") == [1, 2]
    settle(shell, declared(1, 1))
    assert shell.versions("two") == [1]


def test_a_rollback_is_a_rollover_too() -> None:
    shell = Shell()
    settle(shell, declared(5, 1))
    shell.load(shell.decide(declared(4, 1)))
    assert shell.versions("one") == [4, 5]
    outcome = settle(shell, declared(4, 1))
    assert shell.versions("one") == [4]
    assert all(status.ready for status in outcome.statuses.values())


def test_the_version_policy_keeps_older_versions() -> None:
    keep_two = "versionPolicy: {latest: {numVersions: 2}}"
    shell = Shell()
    for version in (1, 2, 3):
        settle(shell, declared(version, 1, keep_two))
    assert shell.versions("one") == [2, 3]
    assert shell.loaded["one"].versions[2].uri == "s3://b/one/2"


def test_a_restarted_server_gets_what_it_had_and_should_have() -> None:
    shell = Shell(refuses=frozenset({("one", 2)}))
    settle(shell, declared(1, 1))
    settle(shell, declared(2, 1))
    pool = replace(shell.snapshot.pool("default/pool"), reports=())
    snapshot = replace(shell.snapshot, resources=tuple(declared(2, 1)), pools={"default/pool": pool})
    (step,) = reconcile(snapshot, NOW).steps["default/pool"]
    model = step.repository.model("one")
    assert model is not None
    assert sorted(model.versions) == [1, 2]


def test_a_faulty_resource_is_left_out_and_says_why() -> None:
    resources, _ = parse_documents(
        MANIFESTS.format(one=1, two=1, tensors=TENSORS, policy="versionPolicy: null").replace(
            "{model: two, inputs: {X: B}", "{model: two, inputs: {Z: B}"
        ),
        "all.yaml",
    )
    snapshot = FleetSnapshot(tuple(resources), (NODE,), problems=(Problem("all.yaml", "", "", "unrelated"),))
    outcome = reconcile(snapshot, NOW)
    (step,) = outcome.steps["default/pool"]
    assert [model.name for model in step.repository.models] == ["one", "two"]
    assert not outcome.statuses["Ensemble default/pipe"].ready
    assert {problem.resource for problem in outcome.problems} == {"", "Ensemble default/pipe"}


@given(
    edits=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=5),
    pace=st.lists(st.integers(0, 3), min_size=20, max_size=20),
    refuses=st.frozensets(st.tuples(st.sampled_from(["one", "two"]), st.integers(2, 3)), max_size=2),
)
@examples(12)
def test_what_serves_is_never_pulled_from_under_the_ensemble(
    edits: list[tuple[int, int]], pace: list[int], refuses: frozenset[tuple[str, int]]
) -> None:
    shell = Shell()
    settle(shell, declared(1, 1))
    shell.refuses = refuses
    for at, most in enumerate(pace):
        shell.load(shell.decide(declared(*edits[at * len(edits) // len(pace)])), most)
        for step, version in shell.loaded["pipe"].steps.items():
            assert version in shell.loaded[step].versions
    settle(shell, declared(*edits[-1]))
    desired = dict(zip(("one", "two"), edits[-1], strict=True))
    if not refuses & set(desired.items()):
        assert shell.loaded["pipe"].steps == desired
        assert {name: shell.versions(name) for name in desired} == {name: [v] for name, v in desired.items()}
