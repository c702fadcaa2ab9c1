"""The engines of a model: the conditions EngineReady and AccuracyVerified, and how each engine stands."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from argosy.api import ConditionType, InferenceModel, Reason
from argosy.api.status import AccuracyStatus, EngineStatus, VersionState, VersionStatus
from argosy.planning.amounts import listed
from argosy.planning.builds.architectures import why_no_architecture
from argosy.planning.builds.engines import AskedEngine, FormEngines, ModelEngines
from argosy.planning.builds.failures import failure_message, failure_of
from argosy.planning.builds.plan import PlannedBuild
from argosy.planning.builds.pool import failed_reason
from argosy.status.conditions import Finding, bounded
from argosy.status.progress import PoolProgress
from argosy_agent.contract.builds import AccuracyReport, BuildFailure, BuildReport, BuildState

_ENGINES, _MESSAGE, _LINE = 50, 500, 200
"""How many engines a status lists, and how many characters it has for what each says: it has to fit into one object."""
_READY, _VERIFIED = ConditionType.ENGINE_READY, ConditionType.ACCURACY_VERIFIED
_STATES = {BuildState.PENDING: VersionState.PENDING, BuildState.FAILED: VersionState.FAILED}


def engine_findings(model: InferenceModel, progress: PoolProgress) -> list[Finding]:
    """Return whether the engines that the declared form asks for are there, and as accurate as it asks."""
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
    forms = [engines.acting, engines.declared] if engines.is_held else [engines.declared]
    found: dict[tuple[int, str, str], EngineStatus] = {}
    for form in forms:
        served = form.served if form is engines.acting else {}
        for each in form.asked:
            status = _status(each, each.version in served.get(each.architecture, {}), progress.builds, form)
            if status.serving or form is engines.declared:
                found.setdefault((each.version, each.architecture, each.name), status)
    return tuple(sorted(found.values(), key=lambda each: (not each.serving, -each.version, each.architecture)))


def first_engines(engines: Sequence[EngineStatus]) -> dict[str, Any]:
    """Return a status's fields for its engines: as many as it has room for, and how many more there are."""
    return {"engines": tuple(engines[:_ENGINES]), "remaining_engines": max(0, len(engines) - _ENGINES)}


def with_engines(
    versions: Iterable[VersionStatus], model: InferenceModel, progress: PoolProgress
) -> tuple[VersionStatus, ...]:
    """Return the versions, those among them that have no engine yet: they are being built, or cannot be."""
    engines, found = _of(model, progress), {each.version: each for each in versions}
    for version in engines.declared.model.spec.declared_versions if engines is not None else ():
        asked = [each for each in engines.declared.asked if each.version == version] if engines is not None else []
        if not asked or any(each.files is not None for each in asked):
            continue
        known = found.get(version, VersionStatus(version=version, state=VersionState.PENDING))
        if not known.available_replicas:
            worst = min(asked, key=lambda each: _ORDER.index(each.state))
            update = {
                "state": _STATES.get(worst.state, VersionState.BUILDING),
                "reason": _reason(worst, progress.builds),
            }
            found[version] = known.model_copy(update=update)
    return tuple(found[version] for version in sorted(found, reverse=True))


_ORDER = (BuildState.FAILED, BuildState.BUILDING, BuildState.VERIFYING, BuildState.PENDING, BuildState.READY)
"""Of several builds of a version the first of these is what there is to say."""


def _of(model: InferenceModel, progress: PoolProgress) -> ModelEngines | None:
    return progress.engines.models.get(model.name) if progress.engines is not None else None


def _ready(engines: ModelEngines, progress: PoolProgress) -> Finding:
    declared = engines.declared
    meanwhile = _meanwhile(engines)
    if not declared.asked:
        why = why_no_architecture(progress.engines.facts.nodes, declared.model) if progress.engines is not None else ""
        return Finding(_READY, False, Reason.NO_ENGINE_FOR_ARCHITECTURE, f"{why}.{_sentence(meanwhile)}")
    missing = sorted((each for each in declared.asked if not each.is_ready), key=lambda each: _ORDER.index(each.state))
    if not missing:
        cached = all(each.build.report is not None and each.build.report.cached for each in declared.asked)
        reason = Reason.ENGINE_CACHED if cached else Reason.ENGINE_BUILT
        return Finding(_READY, True, reason, listed(map(_named, declared.asked), separator=", "))
    so_far = f"{len(declared.asked) - len(missing)} of {len(declared.asked)} engines are ready"
    failed = [each for each in missing if each.state is BuildState.FAILED]
    if failed:
        which = f" So it is with {listed(map(_named, failed))}; {so_far}." if len(declared.asked) > 1 else ""
        return Finding(
            _READY, False, failed_reason(failed), f"{failure_message(failed[0].build)}{which}{_sentence(meanwhile)}"
        )
    said = listed((_told(each, progress.builds) for each in missing), most=3)
    building = any(each.state is not BuildState.PENDING for each in missing)
    return Finding(_READY, False, Reason.BUILDING if building else Reason.BUILD_PENDING, f"{so_far}; {said}{meanwhile}")


def _meanwhile(engines: ModelEngines) -> str:
    """Who serves until then."""
    if engines.is_held:
        versions = ", ".join(map(str, engines.acting.model.spec.declared_versions))
        return f"; until then the former form goes on, version {versions}"
    if any(each.former is not None and not each.is_ready for each in engines.declared.asked):
        return "; until then the former engine goes on"
    return ""


def _sentence(clause: str) -> str:
    """A clause that stands by itself."""
    return f" {clause[2:3].upper()}{clause[3:]}." if clause else ""


def _verified(declared: FormEngines) -> Finding:
    engine = declared.model.spec.engine
    if engine is None or engine.accuracy is None:
        return Finding(_VERIFIED, True, Reason.ACCURACY_NOT_REQUIRED)
    if engine.accuracy.skip is not None:
        return Finding(_VERIFIED, True, Reason.ACCURACY_SKIPPED, f"nothing was compared: {engine.accuracy.skip}")
    low = [each for each in declared.asked if each.state is BuildState.FAILED and _is_too_low(each)]
    if low:
        return Finding(_VERIFIED, False, Reason.ACCURACY_TOO_LOW, listed(map(_accuracy, low)))
    missing = [each for each in declared.asked if not each.is_ready or _measured(each) is None]
    if missing or not declared.asked:
        what = listed(map(_named, missing), separator=", ") or "any engine"
        return Finding(_VERIFIED, False, Reason.ACCURACY_PENDING, f"not measured yet: {what}")
    return Finding(_VERIFIED, True, Reason.ACCURACY_VERIFIED, listed(map(_accuracy, declared.asked)))


def _is_too_low(engine: AskedEngine) -> bool:
    return failure_of(engine.build) is BuildFailure.ACCURACY_TOO_LOW


def _measured(engine: AskedEngine) -> AccuracyReport | None:
    return engine.build.report.accuracy if engine.build.report is not None else None


def _accuracy(engine: AskedEngine) -> str:
    """`version 2 for 9.0: perplexity_ratio 1.3, at most 1.05 is asked; engine 7.8, baseline 6 (512 samples)`."""
    said = _measured(engine)
    if said is None:
        return f"{_named(engine)}: {failure_message(engine.build)}"
    bounds = [f"at least {said.minimum:g}"] if said.minimum is not None else []
    bounds += [f"at most {said.maximum:g}"] if said.maximum is not None else []
    both = (
        f"; engine {said.engine:g}, baseline {said.baseline:g}"
        if said.engine is not None and said.baseline is not None
        else ""
    )
    asked = f", {' and '.join(bounds)} is asked" if bounds else ""
    return f"{_named(engine)}: {said.metric} {said.value:g}{asked}{both} ({said.samples} samples)"


def _named(engine: AskedEngine) -> str:
    return f"version {engine.version} for {engine.architecture}"


def _told(engine: AskedEngine, builds: Mapping[str, PlannedBuild]) -> str:
    reason = _reason(engine, builds)
    return f"{_named(engine)}: {engine.state}{f', {reason}' if reason else ''}"


def _reason(engine: AskedEngine, builds: Mapping[str, PlannedBuild]) -> str:
    """Why an engine is not ready, or how far it is."""
    build, planned = engine.build, builds.get(engine.name)
    if engine.state is BuildState.FAILED:
        return bounded(failure_message(build), _MESSAGE)
    if engine.state is BuildState.PENDING:
        return planned.waits if planned is not None else ""
    phase = f"{build.report.phase} {build.report.percent} %" if build.report is not None and build.report.phase else ""
    return "; ".join(part for part in (phase, bounded(build.trouble, _MESSAGE)) if part)


def _status(engine: AskedEngine, serving: bool, builds: Mapping[str, PlannedBuild], form: FormEngines) -> EngineStatus:
    said = engine.build.report or BuildReport(BuildState.PENDING)
    files, ready, asked = engine.files, engine.is_ready, form.model.spec.engine
    runs = engine.state in (BuildState.BUILDING, BuildState.VERIFYING)
    skipped = asked.accuracy.skip if asked is not None and asked.accuracy is not None else None
    return EngineStatus(
        version=engine.version,
        architecture=engine.architecture,
        state=engine.state,
        serving=serving,
        build=engine.name,
        phase=said.phase if runs else "",
        percent=100 if ready else min(100, said.percent) if runs else 0,
        last_line=bounded(said.line, _LINE) if runs or engine.state is BuildState.FAILED else "",
        message="" if ready else _reason(engine, builds) if not runs else bounded(engine.build.trouble, _MESSAGE),
        storage_uri=files.uri if files is not None else "",
        digest=files.digest if files is not None else "",
        size=said.size if ready else 0,
        cached=said.cached if ready else False,
        build_seconds=round(said.seconds, 1) if ready else 0,
        compiler=said.compiler if ready else "",
        key=said.key if ready else "",
        request_digest=engine.digest,
        accuracy=_accuracy_status(said.accuracy) if engine.build.is_over else None,
        accuracy_skipped=skipped or "",
    )


def _accuracy_status(said: AccuracyReport | None) -> AccuracyStatus | None:
    if said is None:
        return None
    return AccuracyStatus(
        metric=said.metric,
        value=said.value,
        passed=said.passed,
        minimum=said.minimum,
        maximum=said.maximum,
        baseline=said.baseline,
        engine=said.engine,
        delta=said.delta,
        samples=said.samples,
        data_digest=said.data_digest,
        time=said.at,
    )
