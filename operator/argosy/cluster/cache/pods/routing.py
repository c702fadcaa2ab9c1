"""What a Pod may be asked for, as labels on it: read, and written. Pure.

A label's key holds a name only if that is short; the whole name of a longer one stands in an annotation.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from argosy.render.names import label
from argosy.render.workloads import GATE, SERVES_PREFIX, route_labels

ROUTES_ANNOTATION = "argosy.dev/routes"
_SETTLED = {
    "type": GATE,
    "status": "True",
    "reason": "Settled",
    "message": "Every model that this server should have was loaded, or failed once.",
}


def routes_of(metadata: Mapping[str, Any]) -> frozenset[str]:
    """The models and ensembles that a Pod's labels name; a label that names none known is given as its whole key."""
    keys = [key for key in metadata.get("labels") or {} if key.startswith(SERVES_PREFIX)]
    long = _long_names((metadata.get("annotations") or {}).get(ROUTES_ANNOTATION, ""))
    return frozenset(_name(key, long) for key in keys)


def routes_patch(uid: str, now: Collection[str], wanted: Collection[str]) -> dict[str, Any]:
    """The merge patch that lets a Pod, of this uid, be asked for `wanted` instead of `now`."""
    labels: dict[str, str | None] = {_key(name): None for name in now}
    labels |= route_labels(wanted)
    long = sorted(name for name in wanted if label(name) != name)
    annotation = json.dumps(long) if long else None
    return {"metadata": {"uid": uid, "labels": labels, "annotations": {ROUTES_ANNOTATION: annotation}}}


def settled_patch(uid: str, at: str) -> dict[str, Any]:
    """The strategic merge patch of a Pod's status that opens its readiness gate; `at` is RFC 3339."""
    return {"metadata": {"uid": uid}, "status": {"conditions": [{**_SETTLED, "lastTransitionTime": at}]}}


def is_settled(status: Mapping[str, Any]) -> bool:
    """Whether a Pod's readiness gate is open."""
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
