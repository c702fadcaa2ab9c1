"""Routes: the models and ensembles that Services route to a Pod, read from its labels and written to them. Pure.

Names that are too long for a label's key are shortened there, and are in an annotation in full.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.render.names import label
from argosy.render.workloads import EJECTED, GATE, SERVES_PREFIX, route_labels

ROUTES_ANNOTATION = "argosy.dev/routes"
_SETTLED = {
    "type": GATE,
    "status": "True",
    "reason": "Settled",
    "message": "Every model that this server should have was loaded, or failed once.",
}


@dataclass(frozen=True, slots=True)
class Routes:
    """The models and ensembles that a Pod serves; no Service routes requests for the `ejected` ones to it."""

    names: frozenset[str] = frozenset()
    ejected: frozenset[str] = frozenset()


def routes_of(metadata: Mapping[str, Any]) -> Routes:
    """Return the routes in a Pod's labels; a label without a known name is represented by its full key."""
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key.startswith(SERVES_PREFIX)}
    long = _long_names((metadata.get("annotations") or {}).get(ROUTES_ANNOTATION, ""))
    ejected = frozenset(_name(key, long) for key, value in labels.items() if value == EJECTED)
    return Routes(frozenset(_name(key, long) for key in labels), ejected)


def routes_patch(uid: str, now: Collection[str], desired: Routes) -> dict[str, Any]:
    """Return the merge patch that replaces the names `now` by the `desired` routes on the Pod of this uid."""
    labels: dict[str, str | None] = {_key(name): None for name in now}
    labels |= route_labels(desired.names)
    labels |= {_key(name): EJECTED for name in desired.ejected}
    long = sorted(name for name in desired.names if label(name) != name)
    annotation = json.dumps(long) if long else None
    return {"metadata": {"uid": uid, "labels": labels, "annotations": {ROUTES_ANNOTATION: annotation}}}


def settled_patch(uid: str, at: str) -> dict[str, Any]:
    """Return the strategic merge patch that sets the readiness gate in a Pod's status; `at` is RFC 3339."""
    return {"metadata": {"uid": uid}, "status": {"conditions": [{**_SETTLED, "lastTransitionTime": at}]}}


def is_settled(status: Mapping[str, Any]) -> bool:
    """Return whether a Pod's readiness gate is set."""
    conditions = status.get("conditions") or ()
    return any(item.get("type") == GATE and item.get("status") == "True" for item in conditions)


def _name(key: str, long: Mapping[str, str]) -> str:
    short = key.removeprefix(SERVES_PREFIX)
    if short in long:
        return long[short]
    return short if label(short) == short else key


def _key(name: str) -> str:
    return name if name.startswith(SERVES_PREFIX) else SERVES_PREFIX + label(name)


def _long_names(text: str) -> dict[str, str]:
    """Return full names by their labels. Invalid content, such as a user's edit, is ignored."""
    try:
        names = json.loads(text or "[]")
    except ValueError:
        return {}
    return {label(name): name for name in names if isinstance(name, str)} if isinstance(names, list) else {}
