"""The cached details of servers' and activators' ConfigMaps, Deployments and other objects. Pure."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from argosy.cluster.cache.pods.pod_errors import deployment_error
from argosy.planning.facts import CurrentServer, Node
from argosy.planning.history import ControllerRevision
from argosy.planning.nodes.last_reported import parse_hardware
from argosy.render.names import label
from argosy.render.workloads import (
    ACCOUNT_ANNOTATION,
    ACTIVATOR_LABEL,
    DRAIN_ANNOTATION,
    HARDWARE_ANNOTATION,
    NO_ACCOUNT,
    PLACEHOLDER_LABEL,
    PLACEMENT_ANNOTATION,
    REVISION_NOTES,
    SERVED_ANNOTATION,
    SERVER_LABEL,
    TEMPLATE_ANNOTATION,
    Account,
    parse_drain,
    parse_placement,
    parse_served,
)
from argosy_agent.contract import RenderedRepository
from argosy_agent.contract.activation import QUEUED_SUFFIX, QueuedRequests, parse_queued
from argosy_agent.contract.documents import DESIRED_KEY, STATE_KEY, AgentState, parse_repository, parse_state
from argosy_agent.contract.fields import DocumentError


@dataclass(frozen=True, slots=True)
class Desired:
    """A server's ConfigMap: its full name, its placement, and what it served at its last report.

    None where that cannot be read. `drain_since`: since when a draining model or ensemble is not routed to; `hardware`:
    the node with the GPUs that it last reported; None where none are recorded.
    """

    server: str
    current: CurrentServer | None
    error: str = ""
    served: RenderedRepository | None = None
    drain_since: Mapping[str, datetime] = field(default_factory=dict)
    hardware: Node | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A server's state ConfigMap: the state of its agent; None where it is missing or invalid.

    `written_at` is not compared, so that an unchanged state that is written again is no event.
    """

    agent: AgentState | None
    error: str = ""
    written_at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ActivatorState:
    """An activator's state ConfigMap: the valid reports of its Pods.

    Two are equal where requests for the same names wait at the same Pods. Their number is read by each measurement; a
    change of it alone is no reason to plan.
    """

    reports: tuple[QueuedRequests, ...] = field(default=(), compare=False)
    waiting: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Running:
    """A server's Deployment: the hash of its template, why it has no Pod, and its service account."""

    template: str
    error: str = ""
    account: Account = NO_ACCOUNT


@dataclass(frozen=True, slots=True)
class AccountUid:
    """A ServiceAccount: its UID."""

    uid: str


def of_deployment(body: Mapping[str, Any]) -> Running | None:
    """Return the cached details of a Deployment; None of a placeholder, which nothing waits for."""
    if PLACEHOLDER_LABEL in (body["metadata"].get("labels") or {}):
        return None
    annotations = body["metadata"].get("annotations") or {}
    template = (body.get("spec") or {}).get("template") or {}
    notes = (template.get("metadata") or {}).get("annotations") or {}
    return Running(
        annotations.get(TEMPLATE_ANNOTATION, ""),
        deployment_error(body.get("status") or {}),
        Account(annotations.get(ACCOUNT_ANNOTATION, ""), notes.get(ACCOUNT_ANNOTATION, "")),
    )


def of_account(body: Mapping[str, Any]) -> AccountUid:
    """Return the UID of a ServiceAccount; empty for one that is to be created."""
    return AccountUid(body["metadata"].get("uid", ""))


def of_revision(body: Mapping[str, Any]) -> ControllerRevision:
    """Return the cached details of a ControllerRevision."""
    annotations = body["metadata"].get("annotations", {})
    notes = tuple((name, annotations[name]) for name in REVISION_NOTES if name in annotations)
    return ControllerRevision(body["metadata"]["name"], int(body.get("revision", 0)), notes)


def of_configmap(body: Mapping[str, Any]) -> Desired | State | ActivatorState | None:
    """Return the cached details of a ConfigMap: a server's placement or state, or an activator's state."""
    metadata, data = body["metadata"], body.get("data") or {}
    labels = metadata.get("labels") or {}
    if ACTIVATOR_LABEL in labels:
        return _activator_state(data)
    server = labels.get(SERVER_LABEL, "")
    if not server:
        return None
    if metadata["name"] != server:
        return _state(data.get(STATE_KEY, ""))
    return _desired(server, metadata.get("annotations") or {}, data)


def _activator_state(data: Mapping[str, str]) -> ActivatorState:
    reports: list[QueuedRequests] = []
    for key in sorted(data):
        if key.endswith(QUEUED_SUFFIX):
            with suppress(DocumentError):  # it is written again within half a minute
                reports.append(parse_queued(data[key]))
    waiting = ((report.pod, name) for report in reports for name, count in report.queued.items() if count)
    return ActivatorState(tuple(reports), frozenset(waiting))


def _desired(server: str, annotations: Mapping[str, str], data: Mapping[str, str]) -> Desired:
    name = server if label(server) == server else _full_name(server, data.get(DESIRED_KEY, ""))
    served = _served(annotations.get(SERVED_ANNOTATION, ""), data.get(DESIRED_KEY, ""))
    placement, drains = annotations.get(PLACEMENT_ANNOTATION, ""), parse_drain(annotations.get(DRAIN_ANNOTATION, "{}"))
    if not placement:
        return Desired(name, None, served=served, drain_since=drains)
    try:
        current = parse_placement(name, placement)
        hardware = parse_hardware(current.node, annotations.get(HARDWARE_ANNOTATION, ""))
        return Desired(name, current, served=served, drain_since=drains, hardware=hardware)
    except ValueError as error:
        return Desired(name, None, str(error), served, drains)


def _served(note: str, text: str) -> RenderedRepository | None:
    if not note:
        return None
    try:
        return parse_served(note, parse_repository(text))
    except DocumentError:
        return None  # the next apply corrects it; what it was before is unknown


def _full_name(server: str, text: str) -> str:
    """Return the server's full name, from its repository document: a label has only part of a long one."""
    try:
        name = json.loads(text)["server"]
    except (ValueError, KeyError, TypeError):
        return server
    return name if isinstance(name, str) and label(name) == server else server


def _state(text: str) -> State:
    if not text:
        return State(None)
    try:
        agent = parse_state(text)
        return State(replace(agent, written_at=0), written_at=agent.written_at)
    except DocumentError as error:
        return State(None, f"what its agent says cannot be read: {error}")
