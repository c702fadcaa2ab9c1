"""What a Pod may be asked for, as labels on it: read, and written. Pure.

A label's key holds a name only if that is short; the whole name of a longer one stands in an annotation.
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
    """The models and ensembles that a Pod may be asked for; to those of them that are `ejected` no Service leads."""

    names: frozenset[str] = frozenset()
    ejected: frozenset[str] = frozenset()


def routes_of(metadata: Mapping[str, Any]) -> Routes:
    """Return what a Pod's labels name; a label that names none known is given as its whole key."""
    found = {key: value for key, value in (metadata.get("labels") or {}).items() if key.startswith(SERVES_PREFIX)}
    long = _long_names((metadata.get("annotations") or {}).get(ROUTES_ANNOTATION, ""))
    ejected = frozenset(_name(key, long) for key, value in found.items() if value == EJECTED)
    return Routes(frozenset(_name(key, long) for key in found), ejected)


def routes_patch(uid: str, now: Collection[str], wanted: Routes) -> dict[str, Any]:
    """Return the merge patch that lets a Pod, of this uid, be asked for `wanted` instead of the names of `now`."""
    labels: dict[str, str | None] = {_key(name): None for name in now}
    labels |= route_labels(wanted.names)
    labels |= {_key(name): EJECTED for name in wanted.ejected}
    long = sorted(name for name in wanted.names if label(name) != name)
    annotation = json.dumps(long) if long else None
    return {"metadata": {"uid": uid, "labels": labels, "annotations": {ROUTES_ANNOTATION: annotation}}}


def settled_patch(uid: str, at: str) -> dict[str, Any]:
    """Return the strategic merge patch of a Pod's status that opens its readiness gate; `at` is RFC 3339."""
    return {"metadata": {"uid": uid}, "status": {"conditions": [{**_SETTLED, "lastTransitionTime": at}]}}


def is_settled(status: Mapping[str, Any]) -> bool:
    """Return whether a Pod's readiness gate is open."""
    conditions = status.get("conditions") or ()
    return any(each.get("type") == GATE and each.get("status") == "True" for each in conditions)


def _name(key: str, long: Mapping[str, str]) -> str:
    short = key.removeprefix(SERVES_PREFIX)
    if short in long:
        return long[short]
    return short if label(short) == short else key


def _key(name: str) -> str:
    return name if name.startswith(SERVES_PREFIX) else SERVES_PREFIX + label(name)


def _long_names(text: str) -> dict[str, str]:
    """Names by their labels; what people made of the annotation is none of them."""
    try:
        names = json.loads(text or "[]")
    except ValueError:
        return {}
    return {label(name): name for name in names if isinstance(name, str)} if isinstance(names, list) else {}
