"""A part of a Pod template laid over a whole one, as kubectl merges: maps field by field, lists by their merge keys.

The keys are those of Kubernetes' own types (patchMergeKey), which no Python library knows. A list without one, such
as tolerations or a command, is replaced as a whole. null removes a field.
"""

from collections.abc import Mapping, Sequence
from typing import Any

MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "schedulingGates": "name",
    "resourceClaims": "name",
}
"""By a list's field in a Pod template, that which tells its elements apart."""


def overlay(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `patch` over it; neither is changed. What only `patch` has comes after what `base` has."""
    merged = dict(base)
    for field, value in patch.items():
        if value is None:
            merged.pop(field, None)
        else:
            merged[field] = _merged(field, base.get(field), value)
    return merged


def _merged(field: str, base: Any, patch: Any) -> Any:
    if isinstance(patch, Mapping):
        return overlay(base if isinstance(base, Mapping) else {}, patch)
    if isinstance(patch, list) and field in MERGE_KEYS:
        return _by_key(MERGE_KEYS[field], base if isinstance(base, list) else [], patch)
    return patch


def _by_key(key: str, base: Sequence[Any], patch: Sequence[Any]) -> list[Any]:
    """Elements of `base` in their order, each with that of `patch` over it which has its key, then the others."""
    merged = list(base)
    places = {each[key]: place for place, each in enumerate(base)}
    for each in patch:
        place = places.get(each.get(key)) if isinstance(each, Mapping) else None
        if place is None:
            merged.append(overlay({}, each) if isinstance(each, Mapping) else each)
        else:
            merged[place] = overlay(base[place], each)
    return merged
