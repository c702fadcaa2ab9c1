"""The engines of a model: the conditions EngineReady and AccuracyVerified, and how each engine stands."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from argosy.api import ConditionType, InferenceModel, Reason
from argosy.api.status import VersionState, VersionStatus
from argosy.api.statusparts import AccuracyStatus, EngineStatus
from argosy.planning.amounts import listed
from argosy.planning.builds.architectures import why_no_architecture
from argosy.planning.builds.build import ScheduledBuild
from argosy.planning.builds.engines import ModelEngines, RequestedEngine, SpecEngines
from argosy.planning.builds.failures import failure_message, failure_of
from argosy.planning.builds.pool import failed_reason
from argosy.status.conditions import Finding, bounded
from argosy.status.progress.pool_progress import PoolProgress
from argosy_agent.contract.builds import AccuracyReport, BuildFailure, BuildReport, BuildState

_ENGINES, _MESSAGE, _LINE = 50, 500, 200
"""How many engines a status lists, and how many characters it has for what each says: it has to fit into one object."""
_READY, _VERIFIED = ConditionType.ENGINE_READY, ConditionType.ACCURACY_VERIFIED
_STATES = {BuildState.PENDING: VersionState.PENDING, BuildState.FAILED: VersionState.FAILED}


def engine_findings(model: InferenceModel, progress: PoolProgress) -> list[Finding]:
    """Return the conditions EngineReady and AccuracyVerified, by the engines that the declared spec requests."""
    engines = _of(model, progress)
    if engines is None and model.spec.engine is not None:
        return [
            Finding(_READY, False, Reason.BUILD_PENDING, "its pool takes no part, so nothing is built"),
            Finding(_VERIFIED, False, Reason.ACCURACY_PENDING),
        ]
    if engines is None or engines.declared.model.spec.engine is None:
        return [Finding(_READY, True, Reason.ENGINE_NOT_NEEDED), Finding(_VERIFIED, True, Reason.ACCURACY_NOT_REQUIRED)]
    return [_ready(engines, progress), _verified(engines.declared)]


def engine_statuses(model: InferenceModel, progress: PoolProgress) -> tuple[EngineStatus, ...]:
    """Return every engine of a model: those that serve, and those that are asked for in their place."""
    engines = _of(model, progress)
    if engines is None:
        return ()
    both = [engines.acting, engines.declared] if engines.is_deferred else [engines.declared]
    statuses: dict[tuple[int, str, str], EngineStatus] = {}
    for engines_of_spec in both:
        served = engines_of_spec.served if engines_of_spec is engines.acting else {}
        for engine in engines_of_spec.requested:
            status = _status(
                engine, engine.version in served.get(engine.architecture, {}), progress.builds, engines_of_spec
            )
            if status.serving or engines_of_spec is engines.declared:
                statuses.setdefault((engine.version, engine.architecture, engine.name), status)
    return tuple(sorted(statuses.values(), key=lambda entry: (not entry.serving, -entry.version, entry.architecture)))


def first_engines(engines: Sequence[EngineStatus]) -> dict[str, Any]:
    """Return a status's fields for its engines: as many as it has room for, and how many more there are."""
    return {"engines": tuple(engines[:_ENGINES]), "remaining_engines": max(0, len(engines) - _ENGINES)}


def with_engines(
    versions: Iterable[VersionStatus], model: InferenceModel, progress: PoolProgress
) -> tuple[VersionStatus, ...]:
    """Return the versions, those among them that have no engine yet: they are being built, or cannot be."""
    engines, by_version = _of(model, progress), {entry.version: entry for entry in versions}
    for version in engines.declared.model.spec.declared_versions if engines is not None else ():
        requested = (
            [engine for engine in engines.declared.requested if engine.version == version]
            if engines is not None
            else []
        )
        if not requested or any(engine.files is not None for engine in requested):
            continue
        current = by_version.get(version, VersionStatus(version=version, state=VersionState.PENDING))
        if not current.available_replicas:
            worst = min(requested, key=lambda engine: _ORDER.index(engine.state))
            update = {
                "state": VersionState.FAILED if worst.misfit else _STATES.get(worst.state, VersionState.BUILDING),
                "reason": _reason(worst, progress.builds),
            }
            by_version[version] = current.model_copy(update=update)
    return tuple(by_version[version] for version in sorted(by_version, reverse=True))


_ORDER = (BuildState.FAILED, BuildState.BUILDING, BuildState.VERIFYING, BuildState.PENDING, BuildState.READY)
"""Of several builds of a version the first of these is what there is to say."""


def _of(model: InferenceModel, progress: PoolProgress) -> ModelEngines | None:
    return progress.engines.models.get(model.name) if progress.engines is not None else None


def _ready(engines: ModelEngines, progress: PoolProgress) -> Finding:
    declared = engines.declared
    meanwhile = _meanwhile(engines)
    if not declared.requested:
        why = why_no_architecture(progress.engines.facts.nodes, declared.model) if progress.engines is not None else ""
        return Finding(_READY, False, Reason.NO_ENGINE_FOR_ARCHITECTURE, f"{why}.{_sentence(meanwhile)}")
    missing = sorted(
        (engine for engine in declared.requested if not engine.is_ready), key=lambda engine: _ORDER.index(engine.state)
    )
    if not missing:
        cached = all(engine.build.report is not None and engine.build.report.cached for engine in declared.requested)
        reason = Reason.ENGINE_CACHED if cached else Reason.ENGINE_BUILT
        return Finding(_READY, True, reason, listed(map(_named, declared.requested), separator=", "))
    so_far = f"{len(declared.requested) - len(missing)} of {len(declared.requested)} engines are ready"
    failed = [engine for engine in missing if engine.state is BuildState.FAILED]
    if failed:
        which = f" So it is with {listed(map(_named, failed))}; {so_far}." if len(declared.requested) > 1 else ""
        return Finding(
            _READY, False, failed_reason(failed), f"{failure_message(failed[0].build)}{which}{_sentence(meanwhile)}"
        )
    misfits = [engine for engine in missing if engine.misfit]
    if misfits:
        message = f"{_named(misfits[0])}: {misfits[0].misfit}; {so_far}.{_sentence(meanwhile)}"
        return Finding(_READY, False, Reason.ENGINE_OF_ANOTHER_RELEASE, message)
    reported = listed((_message_of(engine, progress.builds) for engine in missing), most=3)
    building = any(engine.state is not BuildState.PENDING for engine in missing)
    return Finding(
        _READY, False, Reason.BUILDING if building else Reason.BUILD_PENDING, f"{so_far}; {reported}{meanwhile}"
    )


def _meanwhile(engines: ModelEngines) -> str:
    """Return what serves until then, as a clause."""
    if engines.is_deferred:
        versions = ", ".join(map(str, engines.acting.model.spec.declared_versions))
        return f"; until then the former form goes on, version {versions}"
    if any(engine.former is not None and not engine.is_ready for engine in engines.declared.requested):
        return "; until then the former engine goes on"
    return ""


def _sentence(clause: str) -> str:
    """Return a clause as a sentence."""
    return f" {clause[2:3].upper()}{clause[3:]}." if clause else ""


def _verified(declared: SpecEngines) -> Finding:
    engine = declared.model.spec.engine
    if engine is None or engine.accuracy is None:
        return Finding(_VERIFIED, True, Reason.ACCURACY_NOT_REQUIRED)
    if engine.accuracy.skip is not None:
        return Finding(_VERIFIED, True, Reason.ACCURACY_SKIPPED, f"nothing was compared: {engine.accuracy.skip}")
    low = [engine for engine in declared.requested if engine.state is BuildState.FAILED and _is_too_low(engine)]
    if low:
        return Finding(_VERIFIED, False, Reason.ACCURACY_TOO_LOW, listed(map(_accuracy, low)))
    missing = [engine for engine in declared.requested if not engine.is_ready or _measured(engine) is None]
    if missing or not declared.requested:
        what = listed(map(_named, missing), separator=", ") or "any engine"
        return Finding(_VERIFIED, False, Reason.ACCURACY_PENDING, f"not measured yet: {what}")
    return Finding(_VERIFIED, True, Reason.ACCURACY_VERIFIED, listed(map(_accuracy, declared.requested)))


def _is_too_low(engine: RequestedEngine) -> bool:
    return failure_of(engine.build) is BuildFailure.ACCURACY_TOO_LOW


def _measured(engine: RequestedEngine) -> AccuracyReport | None:
    return engine.build.report.accuracy if engine.build.report is not None else None


def _accuracy(engine: RequestedEngine) -> str:
    """Return the accuracy as `version 2 for 9.0: perplexity_ratio 1.3, at most 1.05 is required; engine 7.8, baseline 6
    (512 samples)`.
    """
    accuracy = _measured(engine)
    if accuracy is None:
        return f"{_named(engine)}: {failure_message(engine.build)}"
    bounds = [f"at least {accuracy.minimum:g}"] if accuracy.minimum is not None else []
    bounds += [f"at most {accuracy.maximum:g}"] if accuracy.maximum is not None else []
    both = (
        f"; engine {accuracy.engine:g}, baseline {accuracy.baseline:g}"
        if accuracy.engine is not None and accuracy.baseline is not None
        else ""
    )
    bounds_text = f", {' and '.join(bounds)} is required" if bounds else ""
    return f"{_named(engine)}: {accuracy.metric} {accuracy.value:g}{bounds_text}{both} ({accuracy.samples} samples)"


def _named(engine: RequestedEngine) -> str:
    return f"version {engine.version} for {engine.architecture}"


def _message_of(engine: RequestedEngine, builds: Mapping[str, ScheduledBuild]) -> str:
    reason = _reason(engine, builds)
    return f"{_named(engine)}: {engine.state}{f', {reason}' if reason else ''}"


def _reason(engine: RequestedEngine, builds: Mapping[str, ScheduledBuild]) -> str:
    """Return why an engine is not ready, or how far it is."""
    build, planned = engine.build, builds.get(engine.name)
    if engine.misfit:
        return bounded(engine.misfit, _MESSAGE)
    if engine.state is BuildState.FAILED:
        return bounded(failure_message(build), _MESSAGE)
    if engine.state is BuildState.PENDING:
        return planned.waits if planned is not None else ""
    phase = f"{build.report.phase} {build.report.percent} %" if build.report is not None and build.report.phase else ""
    return "; ".join(part for part in (phase, bounded(build.error, _MESSAGE)) if part)


def _status(
    engine: RequestedEngine, serving: bool, builds: Mapping[str, ScheduledBuild], engines: SpecEngines
) -> EngineStatus:
    report = engine.build.report or BuildReport(BuildState.PENDING)
    files, ready, settings = engine.files, engine.is_ready, engines.model.spec.engine
    runs = engine.state in (BuildState.BUILDING, BuildState.VERIFYING)
    skipped = settings.accuracy.skip if settings is not None and settings.accuracy is not None else None
    return EngineStatus(
        version=engine.version,
        architecture=engine.architecture,
        state=engine.state,
        serving=serving,
        build=engine.name,
        phase=report.phase if runs else "",
        percent=100 if ready else min(100, report.percent) if runs else 0,
        last_line=bounded(report.line, _LINE) if runs or engine.state is BuildState.FAILED else "",
        message="" if ready else _reason(engine, builds) if not runs else bounded(engine.build.error, _MESSAGE),
        storage_uri=files.uri if files is not None else "",
        digest=files.digest if files is not None else "",
        size=report.size if ready else 0,
        cached=report.cached if ready else False,
        build_seconds=round(report.seconds, 1) if ready else 0,
        compiler=report.compiler if engine.state is BuildState.READY else "",
        key=report.key if ready else "",
        request_digest=engine.digest,
        accuracy=_accuracy_status(report.accuracy) if engine.build.is_over else None,
        accuracy_skipped=skipped or "",
    )


def _accuracy_status(report: AccuracyReport | None) -> AccuracyStatus | None:
    if report is None:
        return None
    return AccuracyStatus(
        metric=report.metric,
        value=report.value,
        passed=report.passed,
        minimum=report.minimum,
        maximum=report.maximum,
        baseline=report.baseline,
        engine=report.engine,
        delta=report.delta,
        samples=report.samples,
        data_digest=report.data_digest,
        time=report.at,
    )
