"""Files of this machine: what a `file:` URI means, and what a digest is of."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

SKIPPED = frozenset({"__pycache__", ".DS_Store"})
"""Never part of a model; nor are hidden folders, one of which may be the state folder itself."""

ALGORITHM = "sha256"


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


def digest_of(folder: Path) -> str:
    """`sha256:<hex>` of the bytes of the only file.

    Else of the lines that `sha256sum` prints, sorted by name.
    """
    files = (path for path in folder.rglob("*") if path.is_file())
    return digest_of_hexes({path.relative_to(folder).as_posix(): _hex(path) for path in files})


def digest_of_hexes(files: Mapping[str, str]) -> str:
    """What `digest_of` gives for a folder with these files: each one's SHA-256, in hexadecimal digits, by name."""
    if len(files) == 1 and "/" not in (name := next(iter(files))):
        return f"{ALGORITHM}:{files[name]}"
    lines = (f"{files[name]}  {name}\n" for name in sorted(files, key=PurePosixPath))
    return f"{ALGORITHM}:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def digest_of_file(path: Path) -> str:
    """`sha256:<hex>` of a file's bytes."""
    return f"{ALGORITHM}:{_hex(path)}"


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(set(names) - SKIPPED))


def _local_file(name: str, path: Path) -> LocalFile:
    status = path.stat()
    return LocalFile(name, path, status.st_size, status.st_mtime_ns)


def _hex(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, ALGORITHM).hexdigest()
