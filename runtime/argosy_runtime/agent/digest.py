"""What a digest is of: a file's bytes, or a folder's listing of files and their digests."""

import hashlib
from pathlib import Path

ALGORITHM = "sha256"


def digest_of(folder: Path) -> str:
    """`sha256:<hex>` of the bytes of the only file.

    Else of the lines that `sha256sum` prints, sorted by name.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if len(files) == 1 and files[0].parent == folder:
        return digest_of_file(files[0])
    lines = (f"{_hex(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    return f"{ALGORITHM}:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def digest_of_file(path: Path) -> str:
    """`sha256:<hex>` of a file's bytes."""
    return f"{ALGORITHM}:{_hex(path)}"


def _hex(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, ALGORITHM).hexdigest()
