"""Fingerprints, by which changes of applied objects are detected without storing them. Pure.

A live object has more fields than were applied: defaults, and additions by controllers and users. So of the applied
object only the shape is stored (which fields it has), and of the live one the digest of those fields. An object is
unchanged while this digest equals that of the response to the apply. `metadata.managedFields` would not suffice: some
ways of changing an object, such as the scale subresource of older releases, leave no trace there.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

Shape = tuple[Any, ...] | None
"""The fields of a value: `("map", ((name, shape), …))`, `("list", key, ((name, shape), …))`, or None for a scalar.

A list's `key` is the field that identifies its members, empty where they are identified by position.
"""

_KEYS = ("name", "uid", "conditionType", "mountPath")
"""Fields that identify a list's members; the first that all have is used."""
_SIZE = 12
_MOST = 50_000


class Shapes:
    """Returns shapes, interned: a thousand Services share nearly all of theirs."""

    def __init__(self) -> None:
        self._interned: dict[Shape, Shape] = {}

    def of_object(self, body: Mapping[str, Any]) -> Shape:
        """Return an object's shape, without `apiVersion` and `kind`, which the items of lists do not have."""
        if len(self._interned) > _MOST:
            self._interned.clear()  # most are of deleted objects
        return self.of({name: value for name, value in body.items() if name not in ("apiVersion", "kind")})

    def of(self, value: Any) -> Shape:
        """Return a value's shape."""
        if isinstance(value, Mapping):
            shape: Shape = ("map", tuple((name, self.of(value[name])) for name in sorted(value)))
        elif isinstance(value, list) and value and all(isinstance(member, Mapping) for member in value):
            shape = self._of_list(value)
        else:
            return None
        return self._interned.setdefault(shape, shape)

    def _of_list(self, values: list[Mapping[str, Any]]) -> Shape:
        key = list_key(values)
        members = tuple((member[key] if key else None, self.of(member)) for member in values)
        return ("list", key, members)


def list_key(values: list[Mapping[str, Any]]) -> str:
    """Return the field that identifies the members of a list; empty: their position."""
    for key in _KEYS:
        names = [member.get(key) for member in values]
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return key
    return ""


def digest(value: Any) -> bytes:
    """Return the digest of a JSON value, independent of the order of its maps."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=_SIZE).digest()


def fingerprint(live: Any, shape: Shape) -> bytes:
    """Return the digest of the fields of a live value that are in the shape."""
    return digest(projected(live, shape))


def projected(live: Any, shape: Shape) -> Any:
    """Return the fields of a live value that are in the shape, and the lengths of lists: a new member is a change."""
    if shape is None:
        return live
    if shape[0] == "map":
        if not isinstance(live, Mapping):
            return live
        return {name: projected(live[name], inner) for name, inner in shape[1] if name in live}
    if not isinstance(live, list):
        return live
    return [len(live), *_members(live, shape[1], shape[2])]


def _members(live: list[Any], key: str, members: tuple[tuple[str | None, Shape], ...]) -> list[Any]:
    if not key:
        return [projected(one, shape) for one, (_, shape) in zip(live, members, strict=False)]
    by_key = {one.get(key): one for one in live if isinstance(one, Mapping)}
    return [projected(by_key.get(name), shape) for name, shape in members]
