"""What people should notice of a model's engines: that a build begins, and how it ends. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from argosy.api.status import EngineStatus, InferenceModelStatus, ResourceStatus
from argosy_agent.contract.builds import BuildFailure, BuildState

NORMAL, WARNING = "Normal", "Warning"


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event's type, reason and message. `subject`: what makes it the same thing as an earlier one of the reason,
    where the message has numbers that change; the message itself, if it is empty.
    """

    type: str
    reason: str
    message: str
    subject: str = ""


def build_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield what became of the engines of a model whose status `now` was written in place of `before`."""
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
    """Its state; a build that is verified was announced when it began."""
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
