"""What a digest is of: a file's bytes, or a folder's listing of files and their digests."""

import hashlib
from pathlib import Path

ALGORITHM = "sha256"


class DigestMismatchError(ValueError):
    """The files are not those that were declared."""


def verify(folder: Path, expected: str) -> None:
    """Check the files in `folder` against `sha256:<hex>`; nothing expected is always right.

    Raises DigestMismatchError, which says what the digest is.
    """
    if not expected:
        return
    found = digest_of(folder)
    if expected != found:
        raise DigestMismatchError(f"its digest is {found}, not the declared {expected}; is it another version?")


def digest_of(folder: Path) -> str:
    """`sha256:<hex>` of the bytes of the only file.

    Else of the lines that `sha256sum` prints, sorted by name.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if len(files) == 1 and files[0].parent == folder:
        return f"{ALGORITHM}:{_of_file(files[0])}"
    lines = (f"{_of_file(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    return f"{ALGORITHM}:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, ALGORITHM).hexdigest()
