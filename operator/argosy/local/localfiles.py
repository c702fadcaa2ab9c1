"""Files of this machine: what a `file:` URI means, and how its files become a copy."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINK_FROM = 16 * 2**20
"""Files of this many bytes and more are hard-linked where they can be: weights are replaced, not edited."""
CHUNK = 8 * 2**20
SKIPPED = frozenset({"__pycache__", ".DS_Store"})
"""Never part of a model; nor are hidden folders, one of which may be the state folder itself."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """One file below a `file:` URI: where it goes, and where it is."""

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


def local_files(uri: str) -> list[LocalFile]:
    """The one file, or every file below the folder, that a `file:` URI means. Raises OSError."""
    root = local_path(uri)
    if root.is_file():
        return [_local_file(root.name, root)]
    if not root.is_dir():
        raise FileNotFoundError(f"no such file or folder: {root}")
    return [_local_file(str(path.relative_to(root)), path) for path in _walk(root)]


def copy(source: LocalFile, target: Path, arrived: Callable[[int], None]) -> None:
    """Make `target` the same file; `arrived` is told of its bytes as they come. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.size >= LINK_FROM and _link(source.path, target):
        arrived(source.size)
        return
    with source.path.open("rb") as reader, target.open("wb") as writer:
        while chunk := reader.read(CHUNK):
            writer.write(chunk)
            arrived(len(chunk))
    shutil.copystat(source.path, target)


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(set(names) - SKIPPED))


def _local_file(name: str, path: Path) -> LocalFile:
    status = path.stat()
    return LocalFile(name, path, status.st_size, status.st_mtime_ns)


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source.resolve(), target)
    except OSError:
        return False
    return True
