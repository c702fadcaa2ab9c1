"""Messages of why a Pod does not run, from the conditions and container states in its status. Pure."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from argosy.api.values.times import parse_time
from argosy_common.wording import shortened

_USUAL = ("ContainerCreating", "PodInitializing")
"""Reasons for which every container waits at first."""
_SHOWN = 300


def pod_error(status: Mapping[str, Any]) -> str:
    """Return what keeps a Pod with this status from running; empty where nothing does, or no reason is reported yet."""
    if status.get("phase") == "Failed":
        return _message("the Pod was ended", status.get("reason"), status.get("message"))
    unscheduled = _unscheduled(status)
    if unscheduled:
        return unscheduled
    unfinished = [init for init in status.get("initContainerStatuses") or () if not _succeeded(init)]
    containers = [*unfinished, *(status.get("containerStatuses") or ())]
    return "; ".join(words for container in containers for words in _container(container))


def unscheduled_since(status: Mapping[str, Any]) -> datetime | None:
    """Return since when a Pod with this status is unschedulable; None where it is scheduled, or there is no time."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return parse_time(str(condition.get("lastTransitionTime")))
    return None


def deployment_error(status: Mapping[str, Any]) -> str:
    """Return why a Deployment with this status has no running Pod; empty where it reports no failure."""
    for condition in status.get("conditions") or ():
        kind, value = condition.get("type"), condition.get("status")
        if kind == "ReplicaFailure" and value == "True":
            return _message("no Pod can be made", condition.get("reason"), condition.get("message"))
        if kind == "Progressing" and value == "False":
            return _message("the Deployment does not get on", condition.get("reason"), condition.get("message"))
    return ""


def _unscheduled(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _message("no node takes the Pod", condition.get("reason"), condition.get("message"))
    return ""


def _succeeded(status: Mapping[str, Any]) -> bool:
    """Return whether an init container succeeded."""
    ended = (status.get("state") or {}).get("terminated")
    return ended is not None and ended.get("exitCode") == 0


def _container(status: Mapping[str, Any]) -> Iterator[str]:
    name, state = status.get("name", ""), status.get("state") or {}
    waiting, ended = state.get("waiting"), state.get("terminated")
    last = (status.get("lastState") or {}).get("terminated")
    if waiting and waiting.get("reason") not in _USUAL:
        yield _message(f"container {name}", waiting.get("reason"), waiting.get("message")) + _end(last)
    elif ended:
        yield f"container {name}{_end(ended)}"
    elif last and not status.get("ready"):
        yield f"container {name} starts again{_end(last)}"


def _end(ended: Mapping[str, Any] | None) -> str:
    """Return how a container ended: its exit code and its termination message, if any."""
    if not ended:
        return ""
    code, reason, message = ended.get("exitCode"), ended.get("reason"), str(ended.get("message") or "").strip()
    why = f" ({reason})" if reason and reason not in ("Error", "Completed") else ""
    return f", ended with exit code {code}{why}" + (f": {shortened(message, _SHOWN)}" if message else "")


def _message(what: str, reason: object, message: object) -> str:
    return ": ".join(shortened(str(part), _SHOWN) for part in (what, reason, message) if part)
