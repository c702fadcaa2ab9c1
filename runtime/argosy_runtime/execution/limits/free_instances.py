"""The instances of a model version that can take a batch."""

from collections.abc import Sequence

from argosy_runtime.execution.instance_group import InstanceGroup

from .grants import Grants


class FreeInstances:
    """The free instances by rank, and of equal ranks the longest free first.

    Where that `is_limited` by a rate limiter, only those that it has granted are usable, or else all `numbers`.
    """

    def __init__(self, group: InstanceGroup) -> None:
        self._group = group
        self.numbers: list[int] = []
        self.is_limited = False
        self._grants: Grants | None = None

    def limit(self, grants: Grants) -> None:
        """Let a rate limiter grant instances from now on."""
        self._grants = grants
        self.is_limited = True

    def added(self, number: int) -> None:
        """Add an instance that is loaded."""
        if self._grants is not None:
            self._grants.added(number, self._group.instance(number))
        self._insert(number)

    def retired(self, number: int) -> None:
        """Remove an instance that is to get no more batches; one that runs a batch is dropped when that ends."""
        if number in self.numbers:
            self.numbers.remove(number)
            if self._grants is not None:
                self._grants.gone(number)

    def began(self, number: int) -> None:
        """Remove an instance that gets a batch."""
        self.numbers.remove(number)
        if self._grants is not None:
            self._grants.began(number)

    def ended(self, number: int) -> None:
        """Add an instance whose batch has ended, unless it has left the group."""
        if self._grants is not None:
            self._grants.ended(number)
        if self._group.has(number):
            self._insert(number)
        elif self._grants is not None:
            self._grants.gone(number)

    def usable(self, pending: int) -> Sequence[int]:
        """Return the instances that a batch may go to, while so many requests wait."""
        return self.numbers if self._grants is None else self._grants.usable(self.numbers, pending)

    def settle(self, pending: int) -> None:
        """Return grants that no batch took, or request grants for the requests that still wait."""
        if self._grants is not None:
            self._grants.settle(self.numbers, pending)

    def _insert(self, number: int) -> None:
        """Insert an instance behind those of its rank, before those of a higher one."""
        if not self.numbers:
            self.numbers.append(number)
            return
        rank, at = self._group.instance(number).rank, len(self.numbers)
        while at and self._group.instance(self.numbers[at - 1]).rank > rank:
            at -= 1
        self.numbers.insert(at, number)
