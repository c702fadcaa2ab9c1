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
    """Return `base` with `patch` applied; neither is changed. Keys that only `patch` has come after those of `base`."""
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
    """Return the elements of `base` in their order, each with the element of `patch` that has its key,
    then the others.
    """
    merged = list(base)
    positions = {item[key]: position for position, item in enumerate(base)}
    for item in patch:
        position = positions.get(item.get(key)) if isinstance(item, Mapping) else None
        if position is None:
            merged.append(overlay({}, item) if isinstance(item, Mapping) else item)
        else:
            merged[position] = overlay(base[position], item)
    return merged
