"""Poll mode: the changes between two scans. Pure; the caller keeps the last scan."""

from collections.abc import Mapping
from dataclasses import dataclass

from .layout import ModelFolder


@dataclass(frozen=True, slots=True)
class Changes:
    """Names of models, sorted."""

    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)


def changes(before: Mapping[str, ModelFolder], after: Mapping[str, ModelFolder]) -> Changes:
    """Return the difference of two scans. A folder that moved to another repository is modified."""
    return Changes(
        added=tuple(sorted(after.keys() - before.keys())),
        modified=tuple(sorted(name for name in before.keys() & after.keys() if _differs(before[name], after[name]))),
        removed=tuple(sorted(before.keys() - after.keys())),
    )


def _differs(before: ModelFolder, after: ModelFolder) -> bool:
    return (before.path, before.fingerprint, before.problem, before.config_path) != (
        after.path,
        after.fingerprint,
        after.problem,
        after.config_path,
    )
