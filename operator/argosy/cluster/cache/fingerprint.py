"""Whether a live object still says what was applied, told without keeping either. Pure.

A live object holds more than was applied: defaults, and what controllers and people added. So of what is applied only
its shape is kept (which fields it has), and of what is live the digest of those fields. An object is as it was applied
while that digest is the one that it had right after. Fields' owners, which the API server records, would not do: some
ways of changing an object, such as the scale subresource of older releases, leave no trace there.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

Shape = tuple[Any, ...] | None
"""The fields of a value: `("map", ((name, shape), …))`, `("list", key, (shape, …))`, or None for a value's own sake.

A list's `key` is the field that tells its members apart, empty where their places do.
"""

_KEYS = ("name", "uid", "conditionType", "mountPath")
"""Fields that tell a list's members apart, the first that all have."""
_SIZE = 12
_MOST = 50_000


class Shapes:
    """Makes shapes, equal ones once: a thousand Services have nearly all of theirs in common."""

    def __init__(self) -> None:
        self._known: dict[Shape, Shape] = {}

    def of_object(self, body: Mapping[str, Any]) -> Shape:
        """Return an object's shape, without its type: lists do not repeat that for their members."""
        if len(self._known) > _MOST:
            self._known.clear()  # those of objects that are long gone
        return self.of({name: value for name, value in body.items() if name not in ("apiVersion", "kind")})

    def of(self, value: Any) -> Shape:
        """Return a value's shape."""
        if isinstance(value, Mapping):
            shape: Shape = ("map", tuple((name, self.of(value[name])) for name in sorted(value)))
        elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
            shape = self._of_list(value)
        else:
            return None
        return self._known.setdefault(shape, shape)

    def _of_list(self, values: list[Mapping[str, Any]]) -> Shape:
        key = list_key(values)
        members = tuple((each[key] if key else None, self.of(each)) for each in values)
        return ("list", key, members)


def list_key(values: list[Mapping[str, Any]]) -> str:
    """Return the field by which the members of a list are told apart; empty: by their places."""
    for key in _KEYS:
        found = [each.get(key) for each in values]
        if all(isinstance(each, str) for each in found) and len(set(found)) == len(found):
            return key
    return ""


def digest(value: Any) -> bytes:
    """Return the digest of a JSON value, whatever order its maps are in."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=_SIZE).digest()


def fingerprint(live: Any, shape: Shape) -> bytes:
    """Return the digest of those fields of a live value that the shape has."""
    return digest(projected(live, shape))


def projected(live: Any, shape: Shape) -> Any:
    """Return those fields of a live value that the shape has. Of lists also the length: a member more is a change."""
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
