"""Folders that processes publish under one name, each by a rename: the first one stays."""

import errno
from pathlib import Path

_EXISTS = (errno.EEXIST, errno.ENOTEMPTY)


def publish(folder: Path, target: Path) -> bool:
    """Rename `folder` to `target`. Return False where another folder with files was there. Raises OSError.

    That one may be gone again since, so only the error says that it was there.
    """
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno not in _EXISTS:
            raise
        return False
    return True
