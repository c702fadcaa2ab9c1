"""Files of this machine: what a `file:` URI means."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

SKIPPED = frozenset({"__pycache__", ".DS_Store"})
"""Never part of a model; nor are hidden folders, one of which may be the state folder itself."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """One file below a folder: where it goes, and where it is."""

    name: str
    path: Path
    size: int
    changed_ns: int


def is_file(uri: str) -> bool:
    """Whether `uri` names files of this machine."""
    return urlsplit(uri).scheme in ("", "file")


def local_path(uri: str) -> Path:
    """The path that a `file:` URI (or a bare path) means."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path) if parts.scheme else uri)


def local_files(root: Path) -> list[LocalFile]:
    """The one file that `root` is, or every file below the folder. Raises OSError."""
    if root.is_file():
        return [_local_file(root.name, root)]
    if not root.is_dir():
        raise FileNotFoundError(f"no such file or folder: {root}")
    return [_local_file(path.relative_to(root).as_posix(), path) for path in _walk(root)]


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(set(names) - SKIPPED))


def _local_file(name: str, path: Path) -> LocalFile:
    status = path.stat()
    return LocalFile(name, path, status.st_size, status.st_mtime_ns)
