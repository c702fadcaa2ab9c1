"""Values of one round, taken again in the next one where all that they follow from is equal. Pure."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

Value = TypeVar("Value")
_Entries = dict[Hashable, tuple[Any, Any]]
"""What a value follows from, and the value, by key."""


@dataclass(slots=True, eq=False)
class Reused:
    """The values of one sort, each by a key that is unique in a round. Nothing may change a value that is in here.

    Inputs that did not change are mostly the same objects, which are equal at once.
    """

    _former: _Entries = field(default_factory=dict)
    _present: _Entries = field(default_factory=dict)

    def value(self, key: Hashable, inputs: object, derive: Callable[[], Value]) -> Value:
        """Return what `derive`, a pure function of nothing but the inputs, returns: the object of the round before
        where its inputs were equal.
        """
        entry = self._former.get(key)
        if entry is None or entry[0] != inputs:
            entry = (inputs, derive())
        self._present[key] = entry
        value: Value = entry[1]
        return value

    def before(self, key: Hashable) -> tuple[Any, Any] | None:
        """Return the inputs and the value of the round before; None without one."""
        return self._former.get(key)

    def same(self, key: Hashable, value: Value) -> Value:
        """Return the object of the round before where it is equal, so that what follows from it is found at once."""
        return self.value(key, value, lambda: value)

    def settled(self, key: Hashable, before: Value, inputs: object, derive: Callable[[], Value]) -> Value:
        """Return what `derive` returns, a function of `before`, the inputs and the time, by which it marks what differs
        from before.

        It returned `before` itself where the object of the round before is returned: then no time is in it.
        """
        entry = self._former.get(key)
        if entry is None or not (entry[1] is before or entry[1] == before) or entry[0] != inputs:
            value = derive()
            if value != before:
                return value
            entry = (inputs, before)
        self._present[key] = entry
        settled: Value = entry[1]
        return settled

    @property
    def has_values(self) -> bool:
        """Whether there is a value of the round before."""
        return bool(self._former)

    def next_round(self) -> None:
        """Begin a round: what the last one did not ask for is gone."""
        self._former, self._present = self._present, {}


class RoundCache:
    """The values that a shell keeps from one round to the next. Without it, or with another one, a round is the same.

    It belongs to the rounds of one pool, of which one runs at a time.
    """

    def __init__(self) -> None:
        """Create an empty cache."""
        self._sorts: dict[str, Reused] = {}

    def sort(self, name: str) -> Reused:
        """Return the values of one sort."""
        return self._sorts.setdefault(name, Reused())

    def next_round(self) -> None:
        """Begin a round."""
        for reused in self._sorts.values():
            reused.next_round()
        self._sorts = {name: reused for name, reused in self._sorts.items() if reused.has_values}
