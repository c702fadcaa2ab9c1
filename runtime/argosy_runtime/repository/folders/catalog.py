"""Names of the models in the repositories, for frequent requests.

A folder is listed again only when it has changed, so that a request costs a `stat` for each repository. Whether an
entry is a folder may change behind a link without a trace in the repository, so links are checked each time.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time_ns

from argosy_runtime.errors import internal

# A folder changed twice within one tick of its file system's clock looks the same after as between.
_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class _Listing:
    """A repository at the time of its listing. `signature` is None where it may have changed unseen since."""

    signature: tuple[int, int, int] | None
    folders: frozenset[str]
    links: tuple[str, ...]


class Catalog:
    """Names by repository. Blocks on the disk: called from a thread; any number of callers at once."""

    def __init__(self, repositories: Sequence[Path]) -> None:
        self._repositories = tuple(dict.fromkeys(repositories))
        self._listings: dict[Path, _Listing] = {}

    def names(self) -> frozenset[str]:
        """Return the names of all models. Raises ServingError (INTERNAL) where a repository cannot be read."""
        return frozenset().union(*self.by_repository().values())

    def by_repository(self) -> dict[Path, frozenset[str]]:
        """Return the names of the models of each repository. Raises as `names`."""
        return {repository: self.of(repository) for repository in self._repositories}

    def forget(self, repository: Path) -> None:
        """Drop what is known of a repository."""
        self._listings.pop(repository, None)

    def of(self, repository: Path) -> frozenset[str]:
        """Return the names of the models of one repository, which need not be one of these. Raises as `names`."""
        try:
            status = os.stat(repository)
            listing = self._listings.get(repository)
            signature = (status.st_dev, status.st_ino, status.st_mtime_ns)
            if listing is None or listing.signature != signature:
                settled = time_ns() - status.st_mtime_ns > _SETTLED_NS
                listing = self._listings[repository] = _listing(repository, signature if settled else None)
        except OSError as error:
            raise internal(f"failed to open directory {repository}: {error.strerror}") from error
        return listing.folders.union(name for name in listing.links if _is_folder(repository / name))


def _listing(repository: Path, signature: tuple[int, int, int] | None) -> _Listing:
    with os.scandir(repository) as entries:
        shown = [entry for entry in entries if not entry.name.startswith(".")]
        folders = frozenset(entry.name for entry in shown if entry.is_dir(follow_symlinks=False))
        return _Listing(signature, folders, tuple(entry.name for entry in shown if entry.is_symlink()))


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False
