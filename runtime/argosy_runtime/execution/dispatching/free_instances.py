"""The instances of a model version that can take a batch."""

from argosy_runtime.execution.instance_group import InstanceGroup

from .grants import Grants


class FreeInstances:
    """The free instances by rank, and of equal ranks the longest free first.

    With `grants` of a rate limiter, a batch may go only to those of these `numbers` that it has granted.
    """

    def __init__(self, group: InstanceGroup) -> None:
        self._group = group
        self.numbers: list[int] = []
        self.grants: Grants | None = None

    def added(self, number: int) -> None:
        """Add an instance that is loaded."""
        if self.grants is not None:
            self.grants.added(number, self._group.instance(number))
        self._insert(number)

    def retired(self, number: int) -> None:
        """Remove an instance that is to get no more batches; one that runs a batch is dropped when that ends."""
        if number in self.numbers:
            self.numbers.remove(number)
            if self.grants is not None:
                self.grants.gone(number)

    def began(self, number: int) -> None:
        """Remove an instance that gets a batch."""
        self.numbers.remove(number)
        if self.grants is not None:
            self.grants.began(number)

    def ended(self, number: int) -> None:
        """Add an instance whose batch has ended, unless it has left the group."""
        if self.grants is not None:
            self.grants.ended(number)
        if self._group.has(number):
            self._insert(number)
        elif self.grants is not None:
            self.grants.gone(number)

    def _insert(self, number: int) -> None:
        """Insert an instance behind those of its rank, before those of a higher one."""
        if not self.numbers:
            self.numbers.append(number)
            return
        rank, at = self._group.instance(number).rank, len(self.numbers)
        while at and self._group.instance(self.numbers[at - 1]).rank > rank:
            at -= 1
        self.numbers.insert(at, number)
