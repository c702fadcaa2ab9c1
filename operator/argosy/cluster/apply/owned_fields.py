"""Whether an object stands as it would after another apply, told by what the API server records of its fields. Pure.

Server-side apply records which fields a manager last applied (`metadata.managedFields`); a field that somebody else
changes since is no longer among them. So an apply changes nothing where these are just the fields that are wanted, and
each has the value that is wanted. The values are compared too: some ways of changing an object, such as the scale
subresource of older releases, leave no trace in the record. What is compared wrongly, such as a value that a webhook
rewrites, costs one apply more.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from argosy_common.quantity import parse_quantity

Fields = Mapping[str, Any]
"""Fields as `fieldsV1` has them: `f:NAME` of a map, `k:KEYS` and `v:VALUE` for members of a list, each with its own."""

_IDENTITY = ("name", "namespace", "uid")
"""Fields of the metadata that name the object, and belong to no manager."""
_AMOUNTS = ("limits", "requests", "sizeLimit")
"""Fields whose values are quantities, which the API server writes in its own way: `1` for `1000m`."""
_EMPTY: tuple[Any, ...] = ({}, [], "", None)
_MISSING = object()


def is_applied(desired: Mapping[str, Any], live: Mapping[str, Any], manager: str) -> bool:
    """Return whether `manager` applying `desired` would leave the live object as it is."""
    fields = _fields_of(manager, desired["apiVersion"], live["metadata"].get("managedFields") or ())
    if fields is None:
        return False
    metadata = {name: value for name, value in desired["metadata"].items() if name not in _IDENTITY}
    content = {name: value for name, value in desired.items() if name not in ("apiVersion", "kind")}
    return _stands({**content, "metadata": metadata}, live, fields)


def _fields_of(manager: str, api_version: str, entries: Iterable[Mapping[str, Any]]) -> Fields | None:
    """Return the fields that the manager last applied; None where it did not, or in another version of the API."""
    applied = [each for each in entries if (each.get("manager"), each.get("operation")) == (manager, "Apply")]
    if len(applied) != 1 or applied[0].get("apiVersion") != api_version:
        return None
    fields: Fields | None = applied[0].get("fieldsV1")
    return fields


def _stands(desired: Any, live: Any, fields: Fields, amounts: bool = False) -> bool:
    inner = {name: each for name, each in fields.items() if name != "."}
    if not inner:
        return _holds(desired, live, amounts)
    if isinstance(desired, Mapping):
        return _map_stands(desired, live, inner, amounts)
    if isinstance(desired, list) and isinstance(live, list) and len(desired) == len(inner):
        return all(_member_stands(desired, live, name, each) for name, each in inner.items())
    return False


def _map_stands(desired: Mapping[str, Any], live: Any, fields: Fields, amounts: bool) -> bool:
    # Older releases do not record what is empty.
    recorded = {f"f:{name}" for name, value in desired.items() if value not in _EMPTY or f"f:{name}" in fields}
    if not isinstance(live, Mapping) or recorded != fields.keys():
        return False
    return all(
        _stands(value, live.get(name, _MISSING), fields.get(f"f:{name}", {}), amounts or name in _AMOUNTS)
        for name, value in desired.items()
    )


def _member_stands(desired: list[Any], live: list[Any], name: str, fields: Fields) -> bool:
    """Return whether a list's member stands; one is told by the fields that are its keys, or is a value itself."""
    kind, _, text = name.partition(":")
    if kind == "v":
        return json.loads(text) in desired and json.loads(text) in live
    if kind != "k":
        return False
    keys = json.loads(text)
    wanted, found = _matching(desired, keys), _matching(live, keys)
    return len(wanted) == len(found) == 1 and _stands(wanted[0], found[0], fields)


def _matching(members: list[Any], keys: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the members with these keys; one that is left out has its default."""
    maps = (each for each in members if isinstance(each, Mapping))
    return [each for each in maps if all(each.get(name, value) == value for name, value in keys.items())]


def _holds(desired: Any, live: Any, amounts: bool) -> bool:
    """Return whether a live value is the wanted one, defaults aside."""
    if live is _MISSING:
        return not desired and desired != {}  # the API server leaves out zeros and what is empty, but no empty map
    if isinstance(desired, Mapping) and isinstance(live, Mapping):
        return all(
            _holds(value, live.get(name, _MISSING), amounts or name in _AMOUNTS) for name, value in desired.items()
        )
    if isinstance(desired, list) and isinstance(live, list) and len(desired) == len(live):
        return all(_holds(one, other, amounts) for one, other in zip(desired, live, strict=True))
    return bool(desired == live) or (amounts and _same_amount(desired, live))


def _same_amount(one: Any, other: Any) -> bool:
    try:
        return parse_quantity(str(one)) == parse_quantity(str(other))
    except ValueError:
        return False
