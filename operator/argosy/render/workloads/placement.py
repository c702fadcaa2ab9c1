"""Where a server sits, as a note on its ConfigMap: how an operator that starts anew knows what the last one decided."""

import json
from typing import Any

from argosy.fleet.facts import CurrentServer
from argosy.fleet.plan import ServerPlan

PLACEMENT_ANNOTATION = "argosy.dev/placement"


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
