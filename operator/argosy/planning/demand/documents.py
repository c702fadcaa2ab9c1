"""What models and ensembles take of the documents of their server: the ConfigMaps that its agent reads and writes."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DocumentSize:
    """The most that a model or an ensemble takes, wherever it is placed: with its `declared` number of `versions`, and
    for a `further` one that stays loaded, all in bytes.
    """

    declared: int = 0
    versions: int = 1
    further: int = 0

    def with_versions(self, count: int) -> int:
        """Return the bytes with so many versions loaded."""
        return self.declared + self.further * max(0, count - self.versions)


NO_SIZE = DocumentSize()
"""Of what is not known to be rendered."""


def largest(sizes: Collection[DocumentSize]) -> DocumentSize:
    """Return the largest of several, of which any may come to be."""
    return max(sizes, key=lambda size: (size.declared, size.further), default=NO_SIZE)
