"""The check by `metadata.managedFields` whether another apply would change an object. Pure.

Server-side apply records which fields a manager last applied; a field that another manager changed since is no longer
among them. So an apply changes nothing where the recorded fields are exactly the desired ones, with the desired values.
The values are compared too: some ways of changing an object, such as the scale subresource of older releases, leave no
trace in the record. A false difference, such as a value that a webhook rewrites, costs one unnecessary apply.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from argosy_common.quantity import parse_quantity

Fields = Mapping[str, Any]
"""Fields in the form of `fieldsV1`: `f:NAME` of a map, `k:KEYS` and `v:VALUE` of a list, each with its own fields."""

_IDENTITY = ("name", "namespace", "uid")
"""Fields of the metadata that identify the object and have no manager."""
_AMOUNTS = ("limits", "requests", "sizeLimit")
"""Fields whose values are quantities, which the API server normalizes: `1` for `1000m`."""
_EMPTY: tuple[Any, ...] = ({}, [], "", None)
_MISSING = object()


def is_applied(desired: Mapping[str, Any], live: Mapping[str, Any], manager: str) -> bool:
    """Return whether an apply of `desired` by `manager` would leave the live object unchanged."""
    fields = _fields_of(manager, desired["apiVersion"], live["metadata"].get("managedFields") or ())
    if fields is None:
        return False
    metadata = {name: value for name, value in desired["metadata"].items() if name not in _IDENTITY}
    content = {name: value for name, value in desired.items() if name not in ("apiVersion", "kind")}
    return _is_as_desired({**content, "metadata": metadata}, live, fields)


def _fields_of(manager: str, api_version: str, entries: Iterable[Mapping[str, Any]]) -> Fields | None:
    """Return the fields that the manager last applied; None where it did not, or in another version of the API."""
    applied = [entry for entry in entries if (entry.get("manager"), entry.get("operation")) == (manager, "Apply")]
    if len(applied) != 1 or applied[0].get("apiVersion") != api_version:
        return None
    fields: Fields | None = applied[0].get("fieldsV1")
    return fields


def _is_as_desired(desired: Any, live: Any, fields: Fields, amounts: bool = False) -> bool:
    inner = {name: nested for name, nested in fields.items() if name != "."}
    if not inner:
        return _equals(desired, live, amounts)
    if isinstance(desired, Mapping):
        return _is_map_as_desired(desired, live, inner, amounts)
    if isinstance(desired, list) and isinstance(live, list) and len(desired) == len(inner):
        return all(_is_member_as_desired(desired, live, name, nested) for name, nested in inner.items())
    return False


def _is_map_as_desired(desired: Mapping[str, Any], live: Any, fields: Fields, amounts: bool) -> bool:
    # Older releases do not record what is empty.
    recorded = {f"f:{name}" for name, value in desired.items() if value not in _EMPTY or f"f:{name}" in fields}
    if not isinstance(live, Mapping) or recorded != fields.keys():
        return False
    return all(
        _is_as_desired(value, live.get(name, _MISSING), fields.get(f"f:{name}", {}), amounts or name in _AMOUNTS)
        for name, value in desired.items()
    )


def _is_member_as_desired(desired: list[Any], live: list[Any], name: str, fields: Fields) -> bool:
    """Return whether a list's member is as desired. Members are identified by their keys, or are plain values."""
    kind, _, text = name.partition(":")
    if kind == "v":
        return json.loads(text) in desired and json.loads(text) in live
    if kind != "k":
        return False
    keys = json.loads(text)
    expected, actual = _matching(desired, keys), _matching(live, keys)
    return len(expected) == len(actual) == 1 and _is_as_desired(expected[0], actual[0], fields)


def _matching(members: list[Any], keys: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the members with these keys; a key that is left out has its default."""
    maps = (member for member in members if isinstance(member, Mapping))
    return [member for member in maps if all(member.get(name, value) == value for name, value in keys.items())]


def _equals(desired: Any, live: Any, amounts: bool) -> bool:
    """Return whether a live value is the desired one, apart from defaults."""
    if live is _MISSING:
        return not desired and desired != {}  # the API server leaves out zeros and what is empty, but no empty map
    if isinstance(desired, Mapping) and isinstance(live, Mapping):
        return all(
            _equals(value, live.get(name, _MISSING), amounts or name in _AMOUNTS) for name, value in desired.items()
        )
    if isinstance(desired, list) and isinstance(live, list) and len(desired) == len(live):
        return all(_equals(one, other, amounts) for one, other in zip(desired, live, strict=True))
    return bool(desired == live) or (amounts and _same_amount(desired, live))


def _same_amount(one: Any, other: Any) -> bool:
    try:
        return parse_quantity(str(one)) == parse_quantity(str(other))
    except ValueError:
        return False
