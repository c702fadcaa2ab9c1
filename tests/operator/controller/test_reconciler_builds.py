"""The whole life of a build, round by round: what the reconciler applies, keeps and says. Virtual, no API server."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.operator.controller.bodies import model, pool
from tests.operator.controller.fakes import FakeCache, FakeStatusListener, FakeWriter

from argosy.api import ConditionType, InferenceModelStatus
from argosy.api.values.identity import PoolKey
from argosy.cluster.apply.applier import Applied
from argosy.cluster.cache.builds.build_objects import of_job
from argosy.cluster.cache.builds.build_view import BuildView
from argosy.cluster.cache.pool_view import PoolView
from argosy.controller.resources.parsed_body import parsed_body
from argosy.controller.resources.store import Store
from argosy.controller.rounds.reconciler import Reconciler
from argosy.planning.facts import Node, Refusal
from argosy.render.workloads import Cluster, Images
from argosy_agent.contract.builddocuments import REQUEST_KEY, parse_request
from argosy_agent.contract.builds import BuildFailure, BuildReport, BuildState
from argosy_agent.contract.documents import DESIRED_KEY, parse_repository

KEY = PoolKey("n/p")
MODEL = "InferenceModel n/m"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
STORE = {"maxGpusPerServer": 0, "storage": {"engineCache": {"storageUri": "s3://engines"}}}
ENGINE = {"builder": "onnxruntime", "precision": "fp16"}
READY = BuildReport(BuildState.READY, key="k", uri="s3://engines/k/a", digest=f"sha256:{'1' * 64}", size=9, seconds=60)
FAILED = BuildReport(BuildState.FAILED, failure=BuildFailure.UNSUPPORTED_MODEL, message="no such operator")


def engine_model(**spec: Any) -> dict[str, Any]:
    return model(modelFormat={"name": "onnx"}, storageUri="s3://bucket/m.onnx", engine=ENGINE, **spec)


@dataclass(slots=True)
class Life:
    """A pool on one CPU node with one model, and what became of its build."""

    store: Store = field(default_factory=Store)
    cache: FakeCache = field(default_factory=lambda: FakeCache((Node("a", ()),), {KEY: PoolView()}))
    writes: FakeWriter = field(default_factory=FakeWriter)
    now: datetime = NOW
    run: Reconciler = field(init=False)

    def __post_init__(self) -> None:
        for body in (pool(**STORE), engine_model()):
            self.store.put(parsed_body(body))
        self.start()

    def start(self) -> None:
        """Start a new operator process, which knows only what the cluster holds."""
        cluster = Cluster(ends_jobs=True, judges_failures=True)
        images = Images("runtime:1", "triton", "runtime:1")
        listener = FakeStatusListener()
        self.run = Reconciler(self.store, self.cache, self.writes, listener, images, cluster, lambda: self.now)

    async def round(self) -> set[str]:
        """Run one round; return what it applies of builds, without namespace and the request's name."""
        self.wake = await self.run.reconcile(KEY)
        return {_short(item) for item in self.writes.objects if "-build" in item}

    wake: datetime | None = None

    @property
    def job(self) -> dict[str, Any]:
        """The Job that is applied."""
        (result,) = (body for name, body in self.writes.bodies.items() if name.startswith("Job "))
        return dict(result)

    def observe(self, job: dict[str, Any], report: BuildReport | None = None, ended: str = "", **more: Any) -> None:
        """Let the cluster have this Job, whose Pod reported this."""
        reported = {"type": ended, "status": "True", "lastTransitionTime": self.now.isoformat()}
        body = {**job, "status": {"conditions": [reported] if ended else []}}
        seen = BuildView(job["metadata"]["labels"]["argosy.dev/build"], report, of_job(body), **more)
        self.cache.views[KEY] = replace(self.cache.views[KEY], builds={seen.name: seen})

    def forget_job(self) -> None:
        """Delete the Job, as a user or its time to live does."""
        builds = self.cache.views[KEY].builds
        gone = {name: replace(view, job=None, runs=False) for name, view in builds.items()}
        self.cache.views[KEY] = replace(self.cache.views[KEY], builds=gone)

    @property
    def status(self) -> InferenceModelStatus:
        result = self.writes.statuses[MODEL]
        assert isinstance(result, InferenceModelStatus)
        return result


def _short(identity: str) -> str:
    kind, _, name = identity.partition(" n/p-build")
    return kind + ("-report" if name.endswith("-report") else "") if name[:1] == "-" else kind


FULL = {"ConfigMap", "ConfigMap-report", "ServiceAccount", "Role", "RoleBinding", "Job", "NetworkPolicy"}
RESTING = {"ConfigMap", "ConfigMap-report", "NetworkPolicy"}


async def test_a_build_from_its_job_to_the_engine_that_serves() -> None:
    life = Life()
    assert await life.round() == FULL
    requested = next(body for body in life.writes.bodies.values() if REQUEST_KEY in body.get("data", {}))
    request = parse_request(requested["data"][REQUEST_KEY])
    assert (request.builder, request.architecture, request.compiler) == ("onnxruntime", "amd64", "runtime:1")
    assert not [name for name in life.writes.objects if name.startswith("Deployment")]

    job = life.job
    life.observe(job, BuildReport(BuildState.BUILDING, phase="optimize", percent=40, line="fused 3"), runs=True)
    assert await life.round() == FULL
    (engine,) = life.status.engines
    assert (engine.state, engine.phase, engine.percent, engine.last_line) == ("Building", "optimize", 40, "fused 3")

    life.observe(job, READY, ended="Complete")
    assert await life.round() == RESTING
    assert life.writes.keep >= {f"Job n/{job['metadata']['name']}"}
    assert life.wake is not None
    desired = parse_repository(life.writes.bodies["ConfigMap n/p-0"]["data"][DESIRED_KEY])
    (source,) = desired.models[0].versions.values()
    assert (source.uri, source.digest) == (READY.uri, READY.digest)

    life.now += timedelta(hours=2)
    life.forget_job()
    assert await life.round() == RESTING
    assert life.status.condition(ConditionType.ENGINE_READY) is not None


async def test_another_process_goes_on_with_the_build_that_there_is() -> None:
    life = Life()
    await life.round()
    job = life.job
    life.observe(job, BuildReport(BuildState.BUILDING, percent=40), runs=True)
    await life.round()
    before = life.job
    life.start()
    assert await life.round() == FULL
    assert life.job == before == job


async def test_a_job_that_somebody_deletes_is_recreated() -> None:
    life = Life()
    await life.round()
    job = life.job
    life.observe(job, BuildReport(BuildState.BUILDING, percent=40), runs=True)
    await life.round()
    life.forget_job()
    assert await life.round() == FULL
    assert life.job == job


async def test_a_failed_build_says_why_and_is_not_begun_again() -> None:
    life = Life()
    await life.round()
    life.observe(life.job, FAILED, ended="Failed")
    assert await life.round() == RESTING
    condition = life.status.condition(ConditionType.ENGINE_READY)
    assert condition is not None
    assert str(condition.reason) == "BuildFailed"
    assert "UnsupportedModel: no such operator" in condition.message
    life.forget_job()
    assert await life.round() == RESTING


async def test_what_no_model_asks_for_any_more_goes() -> None:
    life = Life()
    await life.round()
    life.observe(life.job, BuildReport(BuildState.BUILDING), runs=True)
    await life.round()
    life.store.end(parsed_body(engine_model()).newest.identity, "uid-m")
    assert await life.round() == set()
    assert not [name for name in life.writes.keep if "build" in name]


async def test_a_job_that_is_refused_is_reported_on_the_model() -> None:
    life = Life()
    await life.round()
    name = f"Job n/{life.job['metadata']['name']}"
    life.writes.applied = Applied((Refusal(MODEL, name, "exceeds a quota"),))
    await life.round()
    await life.round()
    ready = life.status.condition(ConditionType.READY)
    assert ready is not None
    assert (str(ready.reason), "exceeds a quota" in ready.message) == ("NotApplied", True)
