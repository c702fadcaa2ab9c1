"""The course of one build: what `python -m argosy_builder` does.

Look the engine up, fetch the files, look it up again by their digests, build phase by phase, read back, compare with
the baseline, publish.
"""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.cache.storage import Storage
from argosy_agent.contract.builds import (
    AccuracyReport,
    BuildFailure,
    BuildReport,
    BuildRequest,
    BuildState,
    Gate,
    engine_key,
)
from argosy_agent.engines.artifacts import BrokenArtifactError
from argosy_agent.engines.manifest import Manifest, manifest_of
from argosy_agent.engines.store import EngineStore
from argosy_agent.transfer.errors import FullError, StorageError
from argosy_agent.transfer.localfiles import digest_of

from . import inputs, registry
from .contract import BuildError, BuildJob, Phase, Progress
from .inputs import brought
from .phases import Phases
from .reporter import Course
from .shared import shared
from .verification import Evidence, against, too_low

FETCHED, BUILT, CHECKED, MEASURED = 10, 80, 82, 92
"""Percent of the whole when the files are here, the phases over, the engine read back, and measured."""


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The surroundings of a build. `clock` is steady, in seconds; `now` returns the time as RFC 3339.

    `workspace` is a folder that a later try may find again.
    """

    workspace: Path
    store: EngineStore
    storage: Storage
    clock: Callable[[], float]
    now: Callable[[], str]


class Build:
    """One build. `course` receives its progress, and has the report."""

    def __init__(self, request: BuildRequest, context: BuildContext, course: Course) -> None:
        self._request, self._context, self._course = request, context, course
        self._began = context.clock()
        self._builder = registry.resolve(request.builder)
        self._compiler = ""
        self._progress: Progress = lambda percent, line: None

    def run(self) -> BuildReport:
        """Build or find the engine, and return its report. Raises BuildError; finished phases stay for another try."""
        try:
            self._compiler = self._builder.compiler()
            self._course.update(compiler=self._compiler)
            return self._as_declared() or self._as_it_came()
        except FullError as error:
            raise BuildError(BuildFailure.STORE_FULL, f"spec.storage.engineCache: {error}") from error
        except StorageError as error:
            message = f"spec.storage.engineCache: {error}"
            raise BuildError(BuildFailure.STORE_UNAVAILABLE, message, passes=True) from error

    def _as_declared(self) -> BuildReport | None:
        """Return the engine that is published for the declared digests: nothing has to be fetched for it."""
        request = self._request
        if not request.model.digest or (request.calibration.uri and not request.calibration.digest):
            return None
        key = engine_key(request, request.model.digest, request.calibration.digest, self._compiler)
        engine = self._lookup(key)
        return self._without_measuring(engine) if engine else None

    def _without_measuring(self, engine: Manifest) -> BuildReport | None:
        """Return the report of a published engine that need not be measured, or was for the same data and metric."""
        gate = self._request.gate
        if gate is None:
            return self._ready(engine, cached=True)
        if gate.script.uri or not gate.samples:
            return None
        measurement = (gate.metric, gate.data.digest, gate.samples)
        for report in self._context.store.accuracies(engine.key):
            if (report.metric, report.data_digest, report.samples) == measurement:
                return self._passed(engine, against(report, gate))
        return None

    def _passed(self, engine: Manifest, report: AccuracyReport) -> BuildReport:
        """Return the report of a published engine that is accurate enough. Raises BuildError."""
        self._course.update(accuracy=report)
        if not report.passed:
            raise too_low(report)
        return self._ready(engine, report, cached=True)

    def _as_it_came(self) -> BuildReport:
        """Return the engine for the digests of the fetched files."""
        request, progress = self._request, self._course.during("fetch", 0, FETCHED)
        model = brought(self._context.storage, inputs.MODEL, request.model, progress)
        calibration = None
        if request.calibration.uri:
            calibration = brought(self._context.storage, inputs.CALIBRATION, request.calibration, progress)
        evidence = self._evidence(request.gate, progress) if request.gate else None
        digest = digest_of(model)
        key = engine_key(request, digest, digest_of(calibration) if calibration else "", self._compiler)
        self._course.update(key=key)
        job = BuildJob(request, model, calibration)
        phases = Phases(self._context.workspace / "builds", key, self._context.store, lambda line: progress(-1, line))
        with phases.alone(), self._context.store.leased(key):
            if engine := self._lookup(key):
                return self._existing(engine, job, evidence)
            return self._built(job, phases, digest, evidence)

    def _evidence(self, gate: Gate, progress: Progress) -> Evidence:
        data = brought(self._context.storage, inputs.DATA, gate.data, progress)
        script = brought(self._context.storage, inputs.SCRIPT, gate.script, progress) if gate.script.uri else None
        return Evidence.read(self._request, gate, data, script)

    def _existing(self, engine: Manifest, job: BuildJob, evidence: Evidence | None) -> BuildReport:
        """Return the report of a published engine, measured where no earlier build measured the same."""
        store = self._context.store
        if evidence is None:
            return self._ready(engine, cached=True)
        report = evidence.earlier(store.accuracies(engine.key))
        if report is None:
            folder = self._context.workspace / "engines" / engine.key
            shutil.rmtree(folder, ignore_errors=True)
            progress = self._course.during("fetch the engine", FETCHED, BUILT)
            store.fetch(engine.key, folder, lambda done, all_: progress(100 * done // all_ if all_ else -1, ""))
            progress = self._course.during("accuracy", CHECKED, MEASURED, BuildState.VERIFYING)
            report = evidence.measured(self._request, job.model, folder, self._context.now(), progress)
            store.add_accuracy(engine.key, report)
            shutil.rmtree(folder, ignore_errors=True)
        return self._passed(engine, report)

    def _built(self, job: BuildJob, phases: Phases, digest: str, evidence: Evidence | None) -> BuildReport:
        with self._shared() as shared:
            steps = self._builder.phases(self._reporting(job, shared))
            folder = phases.run(steps, self._begin)
        self._course.during("check", BUILT, CHECKED, BuildState.VERIFYING)
        self._builder.check(job, folder)
        report = None
        if evidence is not None:
            progress = self._course.during("accuracy", CHECKED, MEASURED, BuildState.VERIFYING)
            report = evidence.measured(self._request, job.model, folder, self._context.now(), progress)
            self._course.update(accuracy=report)
            if not report.passed:
                raise too_low(report)
        shape = self._builder.shape(job)
        manifest = manifest_of(
            self._course.report.key, self._request, digest, self._compiler, self._context.now(), report, shape
        )
        published = self._published(manifest, folder)
        phases.drop()
        return self._ready(published, report)

    def _shared(self) -> AbstractContextManager[Path]:
        context, request = self._context, self._request
        folder = context.workspace / "shared" / self._course.report.key

        def log(line: str) -> None:
            self._course.update(line=line[:300])

        return shared(context.store, request.builder, self._compiler, request.architecture, folder, log)

    def _reporting(self, job: BuildJob, shared: Path) -> BuildJob:
        """Return the job with a progress that goes to the phase that is running."""
        return BuildJob(
            job.request, job.model, job.calibration, lambda percent, line: self._progress(percent, line), shared
        )

    def _begin(self, phase: Phase, start: int, end: int) -> None:
        span = BUILT - FETCHED
        self._progress = self._course.during(phase.name, FETCHED + span * start // 100, FETCHED + span * end // 100)

    def _published(self, manifest: Manifest, folder: Path) -> Manifest:
        progress = self._course.during("publish", MEASURED, 100, BuildState.VERIFYING)
        store = self._context.store
        published = store.publish(
            manifest.key, folder, manifest, lambda done, all_: progress(100 * done // all_ if all_ else -1, "")
        )
        if manifest.accuracy is not None and published.attempt and published.accuracy != manifest.accuracy:
            store.add_accuracy(manifest.key, manifest.accuracy)  # another build was first
        with suppress(StorageError):
            store.drop_phases(manifest.key)
        return published

    def _lookup(self, key: str) -> Manifest | None:
        """Return the engine of this key; a broken one is removed, and built again."""
        try:
            return self._context.store.lookup(key)
        except BrokenArtifactError as broken:
            self._course.update(line=f"the store's engine is broken, and is built again: {broken}"[:300])
            self._context.store.remove(key, broken.attempt or None)
            return None

    def _ready(self, engine: Manifest, accuracy: object = None, *, cached: bool = False) -> BuildReport:
        with suppress(StorageError):
            self._context.store.add_request(engine.key, self._request)
        self._course.update(
            state=BuildState.READY,
            phase="",
            percent=100,
            line="",
            key=engine.key,
            uri=engine.uri,
            digest=engine.digest,
            size=engine.size,
            cached=cached,
            seconds=round(self._context.clock() - self._began, 3),
            accuracy=accuracy,
            shape=engine.shape,
        )
        return self._course.report
