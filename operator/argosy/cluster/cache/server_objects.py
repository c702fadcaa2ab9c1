"""What is kept of ConfigMaps, Deployments and ControllerRevisions, beside what is kept of every object. Pure."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from argosy.cluster.cache.pods.pod_trouble import deployment_trouble
from argosy.planning.facts import CurrentServer, Node
from argosy.planning.history import Revision
from argosy.planning.nodes.last_reported import parse_hardware
from argosy.render.names import label
from argosy.render.workloads import (
    ACCOUNT_ANNOTATION,
    ACTIVATOR_LABEL,
    DRAIN_ANNOTATION,
    HARDWARE_ANNOTATION,
    NO_ACCOUNT,
    PLACEMENT_ANNOTATION,
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
    """A server's ConfigMap: its name in full, where it was placed, and what it had ready when it was last heard of.

    None where that cannot be read. `drain_since`: from when each model or ensemble that drains there is not routed to.
    `hardware`: its node with the GPUs that this had; None where nothing is noted of them.
    """

    server: str
    current: CurrentServer | None
    trouble: str = ""
    served: RenderedRepository | None = None
    drain_since: Mapping[str, datetime] = field(default_factory=dict)
    hardware: Node | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A server's state ConfigMap: what its agent says; None where it says nothing, or nothing that can be read.

    `written_at` is the agent's, and no news: it is told apart, so that a state that is written again makes no event.
    """

    said: AgentState | None
    trouble: str = ""
    written_at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Held:
    """An activator's state ConfigMap: what each of its Pods says; of one whose word cannot be read nothing.

    Two are equal where the same names wait at the same Pods: for how many requests that is, each measurement asks, and
    a change of it alone is no reason to plan.
    """

    said: tuple[QueuedRequests, ...] = field(default=(), compare=False)
    waiting: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Running:
    """A server's Deployment: the hash of its template, why it makes no Pod, and what it says of the service account."""

    template: str
    trouble: str = ""
    account: Account = NO_ACCOUNT


@dataclass(frozen=True, slots=True)
class AccountUid:
    """A ServiceAccount: its UID."""

    uid: str


def of_deployment(body: Mapping[str, Any]) -> Running:
    """Return what is kept of a Deployment."""
    annotations = body["metadata"].get("annotations") or {}
    template = (body.get("spec") or {}).get("template") or {}
    notes = (template.get("metadata") or {}).get("annotations") or {}
    return Running(
        annotations.get(TEMPLATE_ANNOTATION, ""),
        deployment_trouble(body.get("status") or {}),
        Account(annotations.get(ACCOUNT_ANNOTATION, ""), notes.get(ACCOUNT_ANNOTATION, "")),
    )


def of_account(body: Mapping[str, Any]) -> AccountUid:
    """Return what is kept of a ServiceAccount; what is sent to be one has no UID yet."""
    return AccountUid(body["metadata"].get("uid", ""))


def of_revision(body: Mapping[str, Any]) -> Revision:
    """Return what is kept of a ControllerRevision."""
    return Revision(body["metadata"]["name"], int(body.get("revision", 0)))


def of_configmap(body: Mapping[str, Any]) -> Desired | State | Held | None:
    """Return what is kept of a ConfigMap: of the two of a server the placement, or the state; of an activator's who
    waits.
    """
    metadata, data = body["metadata"], body.get("data") or {}
    labels = metadata.get("labels") or {}
    if ACTIVATOR_LABEL in labels:
        return _held(data)
    server = labels.get(SERVER_LABEL, "")
    if not server:
        return None
    if metadata["name"] != server:
        return _state(data.get(STATE_KEY, ""))
    return _desired(server, metadata.get("annotations") or {}, data)


def _held(data: Mapping[str, str]) -> Held:
    found: list[QueuedRequests] = []
    for key in sorted(data):
        if key.endswith(QUEUED_SUFFIX):
            with suppress(DocumentError):  # it is written anew in half a minute
                found.append(parse_queued(data[key]))
    waiting = ((each.pod, name) for each in found for name, count in each.queued.items() if count)
    return Held(tuple(found), frozenset(waiting))


def _desired(server: str, annotations: Mapping[str, str], data: Mapping[str, str]) -> Desired:
    name = server if label(server) == server else _whole_name(server, data.get(DESIRED_KEY, ""))
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
        return None  # what stands there is put right, and nothing is known of what stood there before


def _whole_name(server: str, text: str) -> str:
    """The server's name, from what it should hold: the label has only part of a long one."""
    try:
        found = json.loads(text)["server"]
    except (ValueError, KeyError, TypeError):
        return server
    return found if isinstance(found, str) and label(found) == server else server


def _state(text: str) -> State:
    if not text:
        return State(None)
    try:
        said = parse_state(text)
        return State(replace(said, written_at=0), written_at=said.written_at)
    except DocumentError as error:
        return State(None, f"what its agent says cannot be read: {error}")
