"""A server's two ConfigMaps: what it should hold, and the state that its agent reports."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.api.values.times import parse_time
from argosy.planning.facts import CurrentServer, Need, Node
from argosy.planning.nodes.last_reported import hardware_text
from argosy.planning.plan import ServerPlan
from argosy.render.names import object_name, state_name
from argosy.render.repositories import RenderedServer
from argosy.render.workloads.metadata import owned, server_labels
from argosy_agent.contract import RenderedRepository
from argosy_agent.contract.documents import DESIRED_KEY, repository_text

PLACEMENT_ANNOTATION = "argosy.dev/placement"
HARDWARE_ANNOTATION = "argosy.dev/node-hardware"
"""The GPUs of the node of a server that has some of them, as they were last read."""
SERVED_ANNOTATION = "argosy.dev/served"
"""Which versions the server had ready when it was last heard of. Its Pod may be gone by the next round, and with it all
that its agent said: a new one is given back what served."""
DRAIN_ANNOTATION = "argosy.dev/drain-since"
"""From when each model or ensemble that drains there is not routed to."""


def desired_configmap(pool: ServingPool, server: RenderedServer, node: Node | None = None) -> dict[str, Any]:
    """Return the repository that the agent is to bring about, where the server was placed, what serves and what drains.

    `node` is the server's; None where nothing is known of it.
    """
    name = server.plan.name
    annotations = {PLACEMENT_ANNOTATION: placement_text(server.plan)}
    if node is not None and server.plan.gpus:
        annotations[HARDWARE_ANNOTATION] = hardware_text(node, server.plan.gpus)
    if server.served:
        annotations[SERVED_ANNOTATION] = served_text(server.served)
    if server.drain_since:
        annotations[DRAIN_ANNOTATION] = drain_text(server.drain_since)
    rendered = owned("v1", "ConfigMap", object_name(name), pool, server_labels(pool, name), annotations)
    return {**rendered, "data": {DESIRED_KEY: repository_text(server.repository)}}


def state_configmap(pool: ServingPool, server: str) -> dict[str, Any]:
    """Return an object for the agent to write into: without data here, so that applying it takes nothing away."""
    return owned("v1", "ConfigMap", state_name(server), pool, server_labels(pool, server))


def placement_text(plan: ServerPlan) -> str:
    """Return the server's node, its GPUs, the GPUs of each model, and what each was placed with there, as JSON."""
    placed = {placement.model: list(placement.gpus) for placement in plan.placements}
    needs = {model: [need.memory, need.compute] for model, need in plan.needs.items()}
    noted = {"needs": needs} if needs else {}
    return json.dumps({"node": plan.node, "gpus": list(plan.gpus), "placed": placed, **noted}, sort_keys=True)


def parse_placement(server: str, text: str) -> CurrentServer:
    """Return the server in a text of `placement_text`, or of an older one without needs. ValueError where it is none,
    since people edit ConfigMaps.
    """
    try:
        read: dict[str, Any] = json.loads(text)
        placed = {str(model): _indexes(gpus) for model, gpus in read["placed"].items()}
        needs = {str(model): _need(need) for model, need in read.get("needs", {}).items()}
        return CurrentServer(server, _name(read["node"]), _indexes(read["gpus"]), placed, needs)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        way_out = "remove the annotation, and the server is placed again"
        raise ValueError(f"{PLACEMENT_ANNOTATION} of {server} is no placement ({error!r}); {way_out}") from error


def _name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is no node")
    return value


def _indexes(value: Any) -> tuple[int, ...]:
    return _numbers(value, "list of GPUs")


def _need(value: Any) -> Need:
    memory, compute = _numbers(value, "need of a model")
    return Need(memory, compute)


def _numbers(value: Any, what: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(number) is int and number >= 0 for number in value):
        raise ValueError(f"{value!r} is no {what}")
    return tuple(value)


def served_text(served: Mapping[str, tuple[int, ...]]) -> str:
    """Return the note, as JSON."""
    return json.dumps({name: sorted(served[name]) for name in sorted(served)})


def parse_served(text: str, desired: RenderedRepository) -> RenderedRepository:
    """Return the part of the desired repository that a note lists as ready.

    A text that is no such note, since people edit ConfigMaps, lists nothing.
    """
    try:
        read = json.loads(text)
        noted = {str(name): frozenset(map(int, versions)) for name, versions in read.items()}
    except (AttributeError, TypeError, ValueError):
        noted = {}
    models = [
        replace(
            model,
            versions={v: source for v, source in model.versions.items() if v in noted.get(model.declared_name, ())},
        )
        for model in desired.models
    ]
    return RenderedRepository(desired.server, tuple(model for model in models if model.versions))


def drain_text(since: Mapping[str, datetime]) -> str:
    """Return the note, as JSON with RFC 3339 times."""
    return json.dumps({name: since[name].isoformat() for name in sorted(since)})


def parse_drain(text: str) -> dict[str, datetime]:
    """Return the times in a text of `drain_text`; of one that is none, since people edit ConfigMaps, nothing."""
    try:
        read = json.loads(text)
        since = {str(name): parse_time(at) for name, at in read.items()}
    except (AttributeError, TypeError, ValueError):
        return {}
    return {name: at for name, at in since.items() if at is not None}
