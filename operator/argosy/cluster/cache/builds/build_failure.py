"""Why a build's Pod failed without a report by the builder, from the Pod's status. Pure.

The builder reports its own failures. It cannot report what ends it: memory, disk, a signal, a missing image.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.cluster.cache.pods.pod_errors import pod_error
from argosy_agent.contract.builds import BuildFailure

_NO_IMAGE = ("ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError")
_NO_COMMAND = ("ContainerCannotRun", "StartError", "RunContainerError", "CreateContainerError")
_NO_MODULE = "No module named"
_SIGNALS = 128
"""The exit code of a container that a signal ended is this plus the signal's number."""
_EVICTED = (
    ("ephemeral", BuildFailure.DISK_FULL),
    ("disk", BuildFailure.DISK_FULL),
    ("memory", BuildFailure.OUT_OF_MEMORY),
)
"""Words of evictions' messages, in lower case, with the failure that they mean."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a Pod failed: its container's exit code (-1 without one), the failure, and a message."""

    code: int
    failure: BuildFailure
    message: str


def image_failure(status: Mapping[str, Any]) -> BuildFailure | None:
    """Return IMAGE_UNAVAILABLE where a Pod with this status waits for an image that cannot be pulled."""
    waiting = (((container.get("state") or {}).get("waiting") or {}).get("reason") for container in _containers(status))
    return BuildFailure.IMAGE_UNAVAILABLE if any(reason in _NO_IMAGE for reason in waiting) else None


def pod_end(status: Mapping[str, Any]) -> Ended | None:
    """Return how a Pod with this status failed; None where it did not."""
    if status.get("phase") != "Failed":
        return None
    states = (container.get("state") or {} for container in _containers(status))
    ends = [end for state in states if (end := state.get("terminated"))]
    code = next((int(end.get("exitCode", -1)) for end in ends), -1)
    return Ended(code, _failure(status, ends, code), _message(status))


def _failure(status: Mapping[str, Any], ends: list[Mapping[str, Any]], code: int) -> BuildFailure:
    if any(end.get("reason") == "OOMKilled" for end in ends):
        return BuildFailure.OUT_OF_MEMORY
    if status.get("reason") == "Evicted":
        message = str(status.get("message") or "").lower()
        return next((failure for word, failure in _EVICTED if word in message), BuildFailure.BUILD_FAILED)
    if status.get("reason") == "DeadlineExceeded":
        return BuildFailure.DEADLINE_EXCEEDED
    if any(end.get("reason") in _NO_COMMAND or _NO_MODULE in (end.get("message") or "") for end in ends):
        return BuildFailure.BUILDER_MISSING
    return BuildFailure.CRASHED if code > _SIGNALS else BuildFailure.BUILD_FAILED


def _message(status: Mapping[str, Any]) -> str:
    """Return the Pod's error where it has a reason, else its container's."""
    error = pod_error(status)
    return error if status.get("reason") else pod_error({**status, "phase": "Running"}) or error


def _containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()
