"""One engine, from its request to where servers get it: what `python -m argosy_builder` does.

Looked up, brought, looked up again by what came, built phase by phase, read back, held against the baseline, published.
"""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

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
from .course import Course
from .inputs import Fetcher, brought
from .phases import Phases
from .shared import shared
from .verification import Evidence, held, too_low

FETCHED, BUILT, CHECKED, MEASURED = 10, 80, 82, 92
"""Percent of the whole when the files are here, the phases over, the engine read back, and measured."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a build works with. `clock` is steady, in seconds; `now` gives the time as RFC 3339.

    `workspace` is a folder that a later try may find again.
    """

    workspace: Path
    store: EngineStore
    fetcher: Fetcher
    clock: Callable[[], float]
    now: Callable[[], str]


class Build:
    """One build. `course` is told how far it is, and keeps the report."""

    def __init__(self, request: BuildRequest, around: Surroundings, course: Course) -> None:
        self._request, self._around, self._course = request, around, course
        self._began = around.clock()
        self._builder = registry.resolve(request.builder)
        self._compiler = ""
        self._told: Progress = lambda percent, line: None

    def run(self) -> BuildReport:
        """Build the engine, or find it, and return the report of it. Raises BuildError; what was finished stays for
        another try.
        """
        try:
            self._compiler = self._builder.compiler()
            self._course.known(compiler=self._compiler)
            return self._as_declared() or self._as_it_came()
        except FullError as error:
            raise BuildError(BuildFailure.STORE_FULL, f"spec.storage.engineCache: {error}") from error
        except StorageError as error:
            said = f"spec.storage.engineCache: {error}"
            raise BuildError(BuildFailure.STORE_UNAVAILABLE, said, passes=True) from error

    def _as_declared(self) -> BuildReport | None:
        """Return the engine that is there already by the digests that were declared: nothing has to be brought
        for it.
        """
        request = self._request
        if not request.model.digest or (request.calibration.uri and not request.calibration.digest):
            return None
        key = engine_key(request, request.model.digest, request.calibration.digest, self._compiler)
        found = self._lookup(key)
        return self._known_good(found) if found else None

    def _known_good(self, found: Manifest) -> BuildReport | None:
        """Return the report of an engine of the store that need not be measured, as it was for the same data and
        metric.
        """
        gate = self._request.gate
        if gate is None:
            return self._ready(found, cached=True)
        if gate.script.uri or not gate.samples:
            return None
        asked = (gate.metric, gate.data.digest, gate.samples)
        for report in self._around.store.accuracies(found.key):
            if (report.metric, report.data_digest, report.samples) == asked:
                return self._passed(found, held(report, gate))
        return None

    def _passed(self, found: Manifest, report: AccuracyReport) -> BuildReport:
        """Return the report of an engine of the store, where it is good enough. Raises BuildError."""
        self._course.known(accuracy=report)
        if not report.passed:
            raise too_low(report)
        return self._ready(found, report, cached=True)

    def _as_it_came(self) -> BuildReport:
        """Return the engine by the digests of the files that came."""
        request, progress = self._request, self._course.during("fetch", 0, FETCHED)
        model = brought(self._around.fetcher, inputs.MODEL, request.model, progress)
        calibration = None
        if request.calibration.uri:
            calibration = brought(self._around.fetcher, inputs.CALIBRATION, request.calibration, progress)
        evidence = self._evidence(request.gate, progress) if request.gate else None
        digest = digest_of(model)
        key = engine_key(request, digest, digest_of(calibration) if calibration else "", self._compiler)
        self._course.known(key=key)
        job = BuildJob(request, model, calibration)
        phases = Phases(self._around.workspace / "builds", key, self._around.store, lambda line: progress(-1, line))
        with phases.alone(), self._around.store.leased(key):
            if found := self._lookup(key):
                return self._found(found, job, evidence)
            return self._built(job, phases, digest, evidence)

    def _evidence(self, gate: Gate, progress: Progress) -> Evidence:
        data = brought(self._around.fetcher, inputs.DATA, gate.data, progress)
        script = brought(self._around.fetcher, inputs.SCRIPT, gate.script, progress) if gate.script.uri else None
        return Evidence.read(self._request, gate, data, script)

    def _found(self, found: Manifest, job: BuildJob, evidence: Evidence | None) -> BuildReport:
        """Return an engine of the store, measured where nobody did what this request asks for."""
        store = self._around.store
        if evidence is None:
            return self._ready(found, cached=True)
        report = evidence.earlier(store.accuracies(found.key))
        if report is None:
            folder = self._around.workspace / "engines" / found.key
            shutil.rmtree(folder, ignore_errors=True)
            progress = self._course.during("fetch the engine", FETCHED, BUILT)
            store.fetch(found.key, folder, lambda done, all_: progress(100 * done // all_ if all_ else -1, ""))
            progress = self._course.during("accuracy", CHECKED, MEASURED, BuildState.VERIFYING)
            report = evidence.measured(self._request, job.model, folder, self._around.now(), progress)
            store.add_accuracy(found.key, report)
            shutil.rmtree(folder, ignore_errors=True)
        return self._passed(found, report)

    def _built(self, job: BuildJob, phases: Phases, digest: str, evidence: Evidence | None) -> BuildReport:
        with self._shared() as shared:
            steps = self._builder.phases(self._reporting(job, shared))
            folder = phases.run(steps, self._begin)
        self._course.during("check", BUILT, CHECKED, BuildState.VERIFYING)
        self._builder.check(job, folder)
        report = None
        if evidence is not None:
            progress = self._course.during("accuracy", CHECKED, MEASURED, BuildState.VERIFYING)
            report = evidence.measured(self._request, job.model, folder, self._around.now(), progress)
            self._course.known(accuracy=report)
            if not report.passed:
                raise too_low(report)
        shape = self._builder.shape(job)
        manifest = manifest_of(
            self._course.report.key, self._request, digest, self._compiler, self._around.now(), report, shape
        )
        published = self._published(manifest, folder)
        phases.drop()
        return self._ready(published, report)

    def _shared(self) -> AbstractContextManager[Path]:
        around, request = self._around, self._request
        folder = around.workspace / "shared" / self._course.report.key

        def said(line: str) -> None:
            self._course.known(line=line[:300])

        return shared(around.store, request.builder, self._compiler, request.architecture, folder, said)

    def _reporting(self, job: BuildJob, shared: Path) -> BuildJob:
        """Return the job with a progress that goes to whichever phase is running."""
        return BuildJob(
            job.request, job.model, job.calibration, lambda percent, line: self._told(percent, line), shared
        )

    def _begin(self, phase: Phase, start: int, end: int) -> None:
        span = BUILT - FETCHED
        self._told = self._course.during(phase.name, FETCHED + span * start // 100, FETCHED + span * end // 100)

    def _published(self, manifest: Manifest, folder: Path) -> Manifest:
        progress = self._course.during("publish", MEASURED, 100, BuildState.VERIFYING)
        store = self._around.store
        published = store.publish(
            manifest.key, folder, manifest, lambda done, all_: progress(100 * done // all_ if all_ else -1, "")
        )
        if manifest.accuracy is not None and published.attempt and published.accuracy != manifest.accuracy:
            store.add_accuracy(manifest.key, manifest.accuracy)  # another build was first
        with suppress(StorageError):
            store.drop_phases(manifest.key)
        return published

    def _lookup(self, key: str) -> Manifest | None:
        """Return the engine of this key; one that is broken is removed, and built anew."""
        try:
            return self._around.store.lookup(key)
        except BrokenArtifactError as broken:
            self._course.known(line=f"the store's engine is broken, and is built anew: {broken}"[:300])
            self._around.store.remove(key, broken.attempt or None)
            return None

    def _ready(self, engine: Manifest, accuracy: object = None, *, cached: bool = False) -> BuildReport:
        with suppress(StorageError):
            self._around.store.add_request(engine.key, self._request)
        self._course.known(
            state=BuildState.READY,
            phase="",
            percent=100,
            line="",
            key=engine.key,
            uri=engine.uri,
            digest=engine.digest,
            size=engine.size,
            cached=cached,
            seconds=round(self._around.clock() - self._began, 3),
            accuracy=accuracy,
            shape=engine.shape,
        )
        return self._course.report
