"""Builds in virtual time, next to servers: each desired build gets a Job, which reports, succeeds or fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.operator.planning import declared
from tests.operator.planning.simulated_cluster import POOL, Cluster

from argosy.api import Condition, ConditionType, InferenceModelStatus, Resource
from argosy.planning.builds.build import JobState, ObservedBuild, ScheduledBuild
from argosy.planning.builds.images import BuildImages
from argosy.planning.facts import Gpu, Node
from argosy.reconcile import RoundOutcome
from argosy_agent.contract.builds import AccuracyReport, BuildFailure, BuildReport, BuildState

STORE = "s3://engines/e"
GIB = 1 << 30


def pool(**spec: Any) -> Resource:
    """Return the pool, with storage for engines."""
    return declared.pool(storage={"engineCache": {"storageUri": STORE}}, **spec)


def built(name: str, version: int = 1, memory: int = 20, **spec: Any) -> Resource:
    """Return a model that requests an engine; `engine` is merged over its defaults."""
    engine = {"builder": "onnxruntime", **spec.pop("engine", {})}
    return declared.model(name, version, memory, engine=engine, **spec)


def hopper(name: str = "h", gpus: int = 1, **state: Any) -> Node:
    """Return a node with GPUs of compute capability 9.0, or of another."""
    state = {"compute_capability": "9.0", **state}
    return Node(name, tuple(Gpu(index, 80 * GIB) for index in range(gpus)), **state)


def cpu(name: str = "c", architecture: str = "amd64") -> Node:
    """Return a node without GPUs."""
    return Node(name, (Gpu(0, 64 * GIB, is_cpu=True),), labels={"kubernetes.io/arch": architecture})


@dataclass
class Fleet(Cluster):
    """A cluster whose builds take `takes` rounds. `fails`: why builds of a model's URI fail, and what they say.

    While `stuck`, those that run get no further. `jobs` are those that stand, by name, with the round they began in.
    `ever` are all that were begun, in order.
    """

    takes: int = 3
    stuck: bool = False
    fails: dict[str, BuildReport] = field(default_factory=dict)
    jobs: dict[str, tuple[ScheduledBuild, int]] = field(default_factory=dict)
    reports: dict[str, BuildReport] = field(default_factory=dict)
    ever: list[ScheduledBuild] = field(default_factory=list)
    accuracy: AccuracyReport | None = None
    image: str = "argosy-runtime:1"

    def tick(self, resources: Sequence[Resource], seconds: float = 1) -> RoundOutcome:
        """Run one round, and let servers and builds act on it."""
        before = self.snapshot.pool(POOL)
        self.snapshot = replace(
            self.snapshot, pools={POOL: replace(before, builds=self.observed())}, build_images=BuildImages(self.image)
        )
        outcome = super().tick(resources, seconds)
        self._follow({item.name: item for item in outcome.builds.get(POOL, ())})
        return outcome

    def observed(self) -> Mapping[str, ObservedBuild]:
        """Return the builds as the shell observes them."""
        running = {
            name: ObservedBuild(name, self.reports.get(name), JobState.ACTIVE, build.node, build.gpus)
            for name, (build, _) in self.jobs.items()
        }
        over = {name: ObservedBuild(name, report) for name, report in self.reports.items() if name not in running}
        return running | over

    def _state(self) -> object:
        return super()._state(), {name: done for name, (_, done) in self.jobs.items()}, dict(self.reports)

    def _follow(self, planned: Mapping[str, ScheduledBuild]) -> None:
        self.reports = {name: report for name, report in self.reports.items() if name in planned}
        self.jobs = {name: job for name, job in self.jobs.items() if name in planned and planned[name].start}
        for name, build in planned.items():
            if build.start and name not in self.jobs:
                self.jobs[name] = build, 0
                self.ever.append(build)
        for build, done in list(self.jobs.values()):
            if not self.stuck:
                self._build(build, done + 1)

    def _build(self, build: ScheduledBuild, done: int) -> None:
        self.jobs[build.name] = build, done
        percent = 100 * done // (self.takes + 1)
        self.reports[build.name] = BuildReport(BuildState.BUILDING, phase="compile", percent=percent, line="…")
        if done > self.takes:
            self.reports[build.name] = self._end(build)
            del self.jobs[build.name]

    def _end(self, build: ScheduledBuild) -> BuildReport:
        if build.request.model.uri in self.fails:
            return self.fails[build.request.model.uri]
        key = f"{build.name}-key"
        return BuildReport(
            BuildState.READY,
            key=key,
            uri=f"{STORE}/{key}/a",
            digest="sha256:" + "0" * 64,
            size=1000,
            seconds=12.25,
            compiler="onnxruntime 1",
            accuracy=self.accuracy,
        )


def failed(failure: BuildFailure, message: str = "it did not work", **more: Any) -> BuildReport:
    """Return the report of a failed build."""
    return BuildReport(BuildState.FAILED, failure=failure, message=message, **more)


def status(outcome: RoundOutcome, name: str = "m") -> InferenceModelStatus:
    """Return a model's status."""
    result = outcome.statuses[f"InferenceModel default/{name}"]
    assert isinstance(result, InferenceModelStatus)
    return result


def condition(outcome: RoundOutcome, kind: ConditionType, name: str = "m") -> Condition:
    """Return one of a model's conditions."""
    result = status(outcome, name).condition(kind)
    assert result is not None
    return result


def says(outcome: RoundOutcome, kind: ConditionType = ConditionType.READY, name: str = "m") -> tuple[str, str]:
    """Return status and reason of one of a model's conditions."""
    result = condition(outcome, kind, name)
    return result.status.value, str(result.reason)


def loaded(fleet: Fleet, name: str = "m") -> dict[str, dict[int, str]]:
    """Return the versions of a model that each server has loaded, with the source of their files."""
    return {
        server: {version: source.uri for version, source in item.loaded[name].versions.items()}
        for server, item in fleet.servers.items()
        if name in item.loaded
    }
