"""What became of a build's Pod that ended without a word of its own, from what the kubelet says. Pure.

The builder reports why it fails. What ends the builder itself it cannot tell: memory, disk, a signal, an image.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.cluster.cache.pods.pod_trouble import pod_trouble
from argosy_agent.contract.builds import BuildFailure

_NO_IMAGE = ("ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError")
_NO_COMMAND = ("ContainerCannotRun", "StartError", "RunContainerError", "CreateContainerError")
_NO_MODULE = "No module named"
_SIGNALS = 128
"""What a container that a signal ended adds the signal's number to."""
_EVICTED = (
    ("ephemeral", BuildFailure.DISK_FULL),
    ("disk", BuildFailure.DISK_FULL),
    ("memory", BuildFailure.OUT_OF_MEMORY),
)
"""What an eviction's message speaks of, in lower case, and what that is."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a Pod ended that did not succeed: its container's exit code (-1 without one), the failure, and words."""

    code: int
    failure: BuildFailure
    words: str


def image_failure(status: Mapping[str, Any]) -> BuildFailure | None:
    """IMAGE_UNAVAILABLE where a Pod with this status waits for an image that cannot be had."""
    waiting = (((each.get("state") or {}).get("waiting") or {}).get("reason") for each in _containers(status))
    return BuildFailure.IMAGE_UNAVAILABLE if any(reason in _NO_IMAGE for reason in waiting) else None


def pod_end(status: Mapping[str, Any]) -> Ended | None:
    """Return how a Pod with this status failed; None where it did not."""
    if status.get("phase") != "Failed":
        return None
    ends = [end for each in _containers(status) if (end := (each.get("state") or {}).get("terminated"))]
    code = next((int(end.get("exitCode", -1)) for end in ends), -1)
    return Ended(code, _failure(status, ends, code), _words(status))


def _failure(status: Mapping[str, Any], ends: list[Mapping[str, Any]], code: int) -> BuildFailure:
    if any(end.get("reason") == "OOMKilled" for end in ends):
        return BuildFailure.OUT_OF_MEMORY
    if status.get("reason") == "Evicted":
        said = str(status.get("message") or "").lower()
        return next((failure for word, failure in _EVICTED if word in said), BuildFailure.BUILD_FAILED)
    if status.get("reason") == "DeadlineExceeded":
        return BuildFailure.DEADLINE_EXCEEDED
    if any(end.get("reason") in _NO_COMMAND or _NO_MODULE in (end.get("message") or "") for end in ends):
        return BuildFailure.BUILDER_MISSING
    return BuildFailure.CRASHED if code > _SIGNALS else BuildFailure.BUILD_FAILED


def _words(status: Mapping[str, Any]) -> str:
    """The Pod's reason where the kubelet gives one, else its container's."""
    said = pod_trouble(status)
    return said if status.get("reason") else pod_trouble({**status, "phase": "Running"}) or said


def _containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()
