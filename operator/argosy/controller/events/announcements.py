"""The Events of a changed status: of engine builds, scaling, bottlenecks and cordoned GPUs. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from argosy.api import ConditionType, Reason
from argosy.api.scalingstatus import BottleneckStatus, ScalingStatus
from argosy.api.status import CordonedGpu, EnsembleStatus, InferenceModelStatus, ResourceStatus, ServingPoolStatus
from argosy.api.statusparts import EngineStatus
from argosy.autoscaling.bottlenecks.rules import BottleneckKind
from argosy_agent.contract.builds import BuildFailure, BuildState

NORMAL, WARNING = "Normal", "Warning"


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event's type, reason and message. `subject` identifies repetitions of an Event of the same reason whose
    message has changing numbers; where it is empty, the message does.
    """

    type: str
    reason: str
    message: str
    subject: str = ""


def build_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield the Events of a model's engines after a change of its status."""
    if not isinstance(now, InferenceModelStatus):
        return
    former = _states(before)
    for engine in now.engines:
        if former.get(_key(engine)) != _stage(engine) and (announcement := _announcement(engine)) is not None:
            yield announcement


def _states(status: ResourceStatus | None) -> dict[tuple[str, ...], str]:
    engines = status.engines if isinstance(status, InferenceModelStatus) else ()
    return {_key(engine): _stage(engine) for engine in engines}


def _stage(engine: EngineStatus) -> str:
    """Return the engine's state; a verification is part of a build that was announced when it began."""
    return BuildState.BUILDING if engine.state == BuildState.VERIFYING else engine.state


def _key(engine: EngineStatus) -> tuple[str, ...]:
    return str(engine.version), engine.architecture, engine.build


def _announcement(engine: EngineStatus) -> Announcement | None:
    what = f"engine of version {engine.version} for {engine.architecture}"
    match engine.state:
        case BuildState.BUILDING:
            return Announcement(NORMAL, "BuildStarted", f"The {what} is built: build {engine.build}")
        case BuildState.READY if engine.cached:
            return Announcement(NORMAL, "BuildSucceeded", f"The {what} was there already: {engine.storage_uri}")
        case BuildState.READY:
            took = f"after {engine.build_seconds:.0f} s" if engine.build_seconds else "now"
            return Announcement(NORMAL, "BuildSucceeded", f"The {what} is there {took}: {engine.storage_uri}")
        case BuildState.FAILED:
            low = engine.message.startswith(BuildFailure.ACCURACY_TOO_LOW)
            reason = "AccuracyTooLow" if low else "BuildFailed"
            return Announcement(WARNING, reason, f"The {what}: {engine.message}")
    return None


_LIMITS = frozenset({Reason.LIMITED_BY_CAPACITY, Reason.NO_SIGNALS})
"""Reasons that may need an action by the user."""


def scaling_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield the Events of scaling after a change of a model's or ensemble's status."""
    former, present = _scaling_of(before), _scaling_of(now)
    if present is None or former is None:
        return
    newest = present.history[0] if present.history else None
    if newest is not None and (not former.history or former.history[0].time != newest.time):
        grew = (newest.replicas, newest.instances) >= (newest.former_replicas, newest.former_instances)
        reason = Reason.SCALED_UP if grew else Reason.SCALED_DOWN
        yield Announcement(NORMAL, reason, newest.message)
    if present.reason in _LIMITS and former.reason != present.reason and former.metric:
        yield Announcement(WARNING, present.reason, present.message, present.reason)


def _scaling_of(status: ResourceStatus | None) -> ScalingStatus | None:
    return status.scaling if isinstance(status, InferenceModelStatus | EnsembleStatus) else None


ENDED = "BottleneckEnded"
_HARMLESS = frozenset({BottleneckKind.IDLE_GPU, BottleneckKind.LOW_CACHE_HIT_RATE})
"""Bottlenecks that cost money and delay no request."""


def bottleneck_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield the Events of bottlenecks after a change of a model's or ensemble's status."""
    former, present = _bottleneck_of(before), _bottleneck_of(now)
    if present is not None and (former is None or _identity(former) != _identity(present)):
        yield Announcement(
            NORMAL if present.kind in _HARMLESS else WARNING, present.kind, _diagnosis(present), present.stage
        )
    if present is None and former is not None:
        lasted = f" since {former.since}" if former.since else ""
        yield Announcement(
            NORMAL, ENDED, f"{former.kind} of {former.stage}, which was so{lasted}, is over", former.stage
        )


def _bottleneck_of(status: ResourceStatus | None) -> BottleneckStatus | None:
    return status.bottleneck if isinstance(status, InferenceModelStatus | EnsembleStatus) else None


def _identity(bottleneck: BottleneckStatus) -> tuple[str, str]:
    return bottleneck.kind, bottleneck.stage


def _diagnosis(bottleneck: BottleneckStatus) -> str:
    return f"{bottleneck.stage}: {bottleneck.evidence}. {bottleneck.advice[:1].upper()}{bottleneck.advice[1:]}"


def footprint_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield an Event of a model that was first measured to use other memory than it declares."""
    if before is None or not isinstance(now, InferenceModelStatus):
        return
    former, present = before.condition(ConditionType.VALID), now.condition(ConditionType.VALID)
    differs = Reason.FOOTPRINT_DIFFERS
    if present is not None and present.reason == differs and (former is None or former.reason != differs):
        yield Announcement(WARNING, differs, present.message, differs)


CORDONED, UNCORDONED = "GpuCordoned", "GpuUncordoned"


def cordon_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield the Events of cordoned GPUs after a change of a pool's status."""
    former, present = _cordons_of(before), _cordons_of(now)
    for name in sorted(present.keys() - former.keys()):
        yield Announcement(WARNING, CORDONED, f"GPU {name}: {present[name].message}", name)
    for name in sorted(former.keys() - present.keys()):
        yield Announcement(NORMAL, UNCORDONED, f"GPU {name}, which had a cordon since {former[name].time}", name)


def _cordons_of(status: ResourceStatus | None) -> dict[str, CordonedGpu]:
    cordons = status.cordoned_gpus if isinstance(status, ServingPoolStatus) else ()
    return {f"{cordon.node}/{cordon.gpu}": cordon for cordon in cordons}
