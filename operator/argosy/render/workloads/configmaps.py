"""A server's two ConfigMaps: what it should hold, which only the operator writes, and what it has, the agent's.

On the first stands as annotations where the server sits and what it had ready: how an operator that starts anew knows
what the last one decided.
"""

import json
from dataclasses import replace
from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.fleet.facts import CurrentServer
from argosy.fleet.plan import ServerPlan
from argosy.render.names import object_name, state_name
from argosy_runtime.agent.contract import RenderedRepository
from argosy_runtime.agent.documents import DESIRED_KEY, repository_text

from .inputs import Served, ServerWorkload
from .metadata import owned, server_labels

PLACEMENT_ANNOTATION = "argosy.dev/placement"
SERVED_ANNOTATION = "argosy.dev/served"
"""Which versions the server had ready when it was last heard of. Its Pod may be gone by the next round, and with it all
that its agent said: a new one is given back what served."""


def desired_configmap(pool: ServingPool, server: ServerWorkload) -> dict[str, Any]:
    """The repository that the agent is to bring about, where the server was placed, and what it last served."""
    name = server.plan.name
    annotations = {PLACEMENT_ANNOTATION: placement_text(server.plan)}
    if server.served:
        annotations[SERVED_ANNOTATION] = served_text(server.served)
    rendered = owned("v1", "ConfigMap", object_name(name), pool, server_labels(pool, name), annotations)
    return {**rendered, "data": {DESIRED_KEY: repository_text(server.repository)}}


def state_configmap(pool: ServingPool, server: str) -> dict[str, Any]:
    """An object for the agent to write into: without data here, so that applying it takes nothing away."""
    return owned("v1", "ConfigMap", state_name(server), pool, server_labels(pool, server))


def placement_text(plan: ServerPlan) -> str:
    """The server's node, its GPUs, and the GPUs of each model, as JSON."""
    placed = {each.model: list(each.gpus) for each in plan.placements}
    return json.dumps({"node": plan.node, "gpus": list(plan.gpus), "placed": placed}, sort_keys=True)


def parse_placement(server: str, text: str) -> CurrentServer:
    """The server in a text of `placement_text`. ValueError where it is none, since people edit ConfigMaps."""
    try:
        read: dict[str, Any] = json.loads(text)
        placed = {str(model): _indexes(gpus) for model, gpus in read["placed"].items()}
        return CurrentServer(server, _name(read["node"]), _indexes(read["gpus"]), placed)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        way_out = "remove the annotation, and the server is placed anew"
        raise ValueError(f"{PLACEMENT_ANNOTATION} of {server} is no placement ({error!r}); {way_out}") from error


def _name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is no node")
    return value


def _indexes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(each) is int and each >= 0 for each in value):
        raise ValueError(f"{value!r} is no list of GPUs")
    return tuple(value)


def served_text(served: Served) -> str:
    """The note, as JSON."""
    return json.dumps({name: sorted(served[name]) for name in sorted(served)})


def parse_served(text: str, asked: RenderedRepository) -> RenderedRepository:
    """Of the repository that a server was asked to have what the note says was ready.

    A text that is no such note, since people edit ConfigMaps, says that nothing was.
    """
    try:
        read = json.loads(text)
        noted = {str(name): frozenset(map(int, versions)) for name, versions in read.items()}
    except (AttributeError, TypeError, ValueError):
        noted = {}
    models = [
        replace(each, versions={v: source for v, source in each.versions.items() if v in noted.get(each.name, ())})
        for each in asked.models
    ]
    return RenderedRepository(asked.server, tuple(each for each in models if each.versions))
