"""A bounded cache: the one that requests' heads, templates and routes are looked up in.

Eviction is first in, first out: a lookup changes nothing, so that it costs no more than that of a dict.
"""

from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class FifoCache(Generic[Key, Value]):
    """Values by key, at most `capacity` of them."""

    __slots__ = ("_values", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity: Final = capacity
        self._values: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, None where there is none."""
        return self._values.get(key)

    def put(self, key: Key, value: Value) -> tuple[Key, Value] | None:
        """Set the value of a key. Return the oldest key with its value where they were evicted for a new one."""
        values = self._values
        evicted: tuple[Key, Value] | None = None
        if len(values) >= self.capacity and key not in values:
            oldest = next(iter(values))
            evicted = oldest, values.pop(oldest)
        values[key] = value
        return evicted

    def remove(self, key: Key) -> None:
        """Remove a key, if it is there."""
        self._values.pop(key, None)

    def clear(self) -> None:
        """Remove all keys."""
        self._values.clear()

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
