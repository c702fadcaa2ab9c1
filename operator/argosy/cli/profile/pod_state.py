"""How far the Pod of a measurement is, by what the API server says of its Job and of it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any, Final

_UNPULLED: Final = frozenset(("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"))
_NOT_CREATED: Final = frozenset(("CreateContainerConfigError", "CreateContainerError", "RunContainerError"))


class Phase(StrEnum):
    """What the Pod does."""

    WAITING = auto()
    UNSCHEDULABLE = auto()
    RUNNING = auto()
    SUCCEEDED = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class PodState:
    """A phase with its reason: of a wait what it waits for, of a failure what went wrong and the way out."""

    phase: Phase
    message: str = ""


def state_of(job: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> PodState:
    """Return how far a Job's only Pod is."""
    failed = next((one for one in _conditions(job) if one["type"] == "Failed" and one["status"] == "True"), None)
    if failed is not None and failed.get("reason") == "DeadlineExceeded":
        return PodState(Phase.FAILED, "it took longer than --timeout; give it more, or fewer --batches and --instances")
    if not pods:
        message = str(failed.get("message", "")) if failed is not None else "for its Pod"
        return PodState(Phase.FAILED if failed is not None else Phase.WAITING, message)
    return _of_pod(max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", ""))))


def _of_pod(pod: Mapping[str, Any]) -> PodState:
    status = pod.get("status") or {}
    match status.get("phase"):
        case "Succeeded":
            return PodState(Phase.SUCCEEDED)
        case "Failed":
            return PodState(Phase.FAILED, _end(status))
    container = _container(status)
    waiting = (container.get("state") or {}).get("waiting") or {}
    reason, message = str(waiting.get("reason", "")), str(waiting.get("message", ""))
    if reason in _UNPULLED:
        image = container.get("image", "")
        return PodState(Phase.FAILED, f"the image {image} cannot be pulled ({message or reason}); name one by --image")
    if reason in _NOT_CREATED:
        return PodState(Phase.FAILED, f"its container cannot be started: {message or reason}")
    if status.get("phase") == "Running":
        return PodState(Phase.RUNNING)
    for condition in _conditions(pod):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return PodState(Phase.UNSCHEDULABLE, str(condition.get("message", "")))
    return PodState(Phase.WAITING, "for its image and volumes" if container else "for the scheduler")


def _end(status: Mapping[str, Any]) -> str:
    """Return why a Pod failed: of the container, or of the Pod, such as an eviction."""
    ended = (_container(status).get("state") or {}).get("terminated") or {}
    if ended.get("reason") == "OOMKilled":
        return "the host's memory was not sufficient; set resources of container server in the pool's podTemplate"
    code = f"exit status {ended['exitCode']}" if "exitCode" in ended else str(status.get("reason") or "it ended")
    return ": ".join(part for part in (code, str(status.get("message") or "")) if part)


def _container(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the status of a Pod's only container, empty before there is one."""
    statuses: Sequence[Mapping[str, Any]] = status.get("containerStatuses") or ({},)
    return statuses[0]


def _conditions(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (body.get("status") or {}).get("conditions") or ()
