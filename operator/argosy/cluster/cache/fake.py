"""A fake sink: it keeps what a reflector tells, and needs no cluster."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.cluster.client.kinds import Key, key_of


@dataclass(slots=True)
class FakeSink:
    """The objects that there are, by namespace and name."""

    objects: dict[Key, Mapping[str, Any]] = field(default_factory=dict)

    def seen(self, body: Mapping[str, Any]) -> None:
        """Keep it."""
        self.objects[key_of(body)] = body

    def gone(self, body: Mapping[str, Any]) -> None:
        """Forget it."""
        self.objects.pop(key_of(body), None)

    def only(self, namespace: str, keys: Collection[Key]) -> None:
        """Forget the others of the namespace (empty: of all)."""
        for key in [each for each in self.objects if each not in keys and namespace in ("", each[0])]:
            del self.objects[key]

    def names(self) -> set[str]:
        """Return the objects' names."""
        return {name for _, name in self.objects}
