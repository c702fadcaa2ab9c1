"""One model as a server's folder should hold it. Pure."""

from collections.abc import Mapping
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

    def without_newest(self) -> "Target":
        """Return the target without its newest version.

        Its config may still name that version: servers leave out versions without a folder.
        """
        versions = sorted(self.model.versions)[:-1]
        model = replace(self.model, versions={version: self.model.versions[version] for version in versions})
        return Target(model, {version: self.keys[version] for version in versions})
