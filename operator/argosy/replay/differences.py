"""Two documents compared, field by field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ABSENT = object()
"""What a field is that one of the documents does not have."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field with two values. `path`: such as `statuses.InferenceModel default/a.replicas`, or `steps[2].name`."""

    path: str
    recorded: Any = ABSENT
    replayed: Any = ABSENT


def differences(recorded: Any, replayed: Any, path: str = "") -> Iterator[Difference]:
    """Yield the fields in which two documents of plain JSON values differ, in the order of the recorded one."""
    if isinstance(recorded, Mapping) and isinstance(replayed, Mapping):
        for name in [*recorded, *(name for name in replayed if name not in recorded)]:
            inner = f"{path}.{name}" if path else str(name)
            yield from differences(recorded.get(name, ABSENT), replayed.get(name, ABSENT), inner)
    elif isinstance(recorded, list | tuple) and isinstance(replayed, list | tuple):
        yield from _of_lists(recorded, replayed, path)
    elif recorded != replayed:
        yield Difference(path, recorded, replayed)


def _of_lists(recorded: Sequence[Any], replayed: Sequence[Any], path: str) -> Iterator[Difference]:
    for index in range(max(len(recorded), len(replayed))):
        before = recorded[index] if index < len(recorded) else ABSENT
        after = replayed[index] if index < len(replayed) else ABSENT
        yield from differences(before, after, f"{path}[{index}]")
