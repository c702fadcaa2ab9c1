"""Local files: resolution of `file:` URIs, and digests."""

import hashlib
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from .beneath import EVERYWHERE, check_kind, resolved
from .errors import StorageError

CACHE = "__pycache__"
"""A folder that is never part of a model; nor is a hidden one, which may be the state folder itself."""
_LEFTOVERS = frozenset({".DS_Store", "__MACOSX"})
_LEFTOVER_PREFIX = "._"
"""How macOS begins the name of a file with what its file system has of another file."""
_OF_FILE_SYSTEM = "lost+found"
"""What ext4 has at the top of a volume, where only root may look."""

ALGORITHM = "sha256"


@dataclass(frozen=True, slots=True)
class LocalFile:
    """One file below a folder: where it goes, and where it is."""

    name: str
    path: Path
    size: int
    changed_ns: int


def is_file(uri: str) -> bool:
    """Return whether `uri` names files of this machine."""
    return urlsplit(uri).scheme in ("", "file")


def local_path(uri: str) -> Path:
    """Return the path that a `file:` URI (or a bare path) means."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path) if parts.scheme else uri)


def local_files(path: Path, root: Path = EVERYWHERE) -> list[LocalFile]:
    """Return the one file that `path` is, or every file below the folder, by name.

    Raises StorageError for what leads out of `root`, can never be read or is no file: nothing is left out in silence.
    Raises OSError.
    """
    real = resolved(path, root)
    status = real.stat()
    if not stat.S_ISDIR(status.st_mode):
        check_kind(status, path)
        return [LocalFile(path.name, path, status.st_size, status.st_mtime_ns)]
    return list(_walk(path, "", root, ((status.st_dev, status.st_ino),)))


def is_leftover(name: str) -> bool:
    """Return whether macOS created a file or folder of this name next to people's own: it is part of no model."""
    return name in _LEFTOVERS or name.startswith(_LEFTOVER_PREFIX)


def digest_of(folder: Path) -> str:
    """Return `sha256:<hex>` of the bytes of the only file.

    For several files it is the digest of the lines that `sha256sum` prints, sorted by name.
    """
    files = (path for path in folder.rglob("*") if path.is_file())
    return digest_of_hexes({path.relative_to(folder).as_posix(): _hex(path) for path in files})


def digest_of_hexes(files: Mapping[str, str]) -> str:
    """Return what `digest_of` gives for a folder with these files: each one's SHA-256, in hexadecimal digits,
    by name.
    """
    if len(files) == 1 and "/" not in (name := next(iter(files))):
        return f"{ALGORITHM}:{files[name]}"
    lines = (f"{files[name]}  {name}\n" for name in sorted(files, key=PurePosixPath))
    return f"{ALGORITHM}:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def digest_of_file(path: Path) -> str:
    """Return `sha256:<hex>` of a file's bytes."""
    return f"{ALGORITHM}:{_hex(path)}"


def _walk(folder: Path, prefix: str, root: Path, above: tuple[tuple[int, int], ...]) -> Iterator[LocalFile]:
    """Yield the files below a folder. `above` has the device and inode of it and of each folder that leads to it."""
    for path in sorted(folder.iterdir()):
        skipped = path.name in (CACHE, _OF_FILE_SYSTEM) or path.name.startswith(".")
        if is_leftover(path.name) or (skipped and not path.is_file()):
            continue
        status = resolved(path, root).stat()
        if not stat.S_ISDIR(status.st_mode):
            check_kind(status, path)
            yield LocalFile(f"{prefix}{path.name}", path, status.st_size, status.st_mtime_ns)
        elif (status.st_dev, status.st_ino) in above:
            raise StorageError(f"{path} is a link to a folder that it lies in, which would never end")
        else:
            yield from _walk(path, f"{prefix}{path.name}/", root, (*above, (status.st_dev, status.st_ino)))


def _hex(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, ALGORITHM).hexdigest()
