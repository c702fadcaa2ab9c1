"""One model as a server's folder should hold it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from argosy_agent.contract import RenderedModel


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """One model as it should be, with the cache key of each version's files ("" for an ensemble's).

    Two are equal that a server would load alike.
    """

    model: RenderedModel
    keys: Mapping[int, str]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.keys == other.keys and self.model.serves_like(other.model)

    def has_same_files(self, other: "Target", version: int) -> bool:
        """Return whether a version's folder looks the same in both."""
        source, others = self.model.versions[version], other.model.versions.get(version)
        same_name = others is not None and source.filename == others.filename
        same_texts = self.model.texts == other.model.texts
        return same_name and same_texts and self.keys[version] == other.keys.get(version)

    def with_fewer_versions(self) -> "Iterator[Target]":
        """Yield targets with fewer versions, to be tried in this order: without the newest ones, more and more, and
        then each of these alone, since it may be an older one that does not load.

        The config may still name the other versions: servers leave out versions without a folder.
        """
        versions = sorted(self.model.versions)
        for count in range(len(versions) - 1, 0, -1):
            yield self._of(versions[:count])
        for version in reversed(versions[1:]):
            yield self._of([version])

    def _of(self, versions: list[int]) -> "Target":
        model = replace(self.model, versions={version: self.model.versions[version] for version in versions})
        return Target(model, {version: self.keys[version] for version in versions})
