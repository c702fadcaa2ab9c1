"""Layers of an image: archives laid over each other, the later over the earlier."""

import shutil
import tarfile
from pathlib import Path, PurePosixPath

from argosy_agent.transfer.budget import Budget
from argosy_agent.transfer.stores.source import safe_name
from argosy_common.tarballs import extract, opened

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"


def lay(layer: Path, folder: Path, budget: Budget) -> None:
    """Lay one archive over what `folder` holds.

    A member takes the place of what stands there; `.wh.<name>` takes away what earlier layers brought under that name,
    and the opaque whiteout all that they brought into that folder. Raises StorageError, OSError, tarfile.TarError.
    """
    brought: set[Path] = set()
    with opened(layer) as tarred:
        for member in tarred:
            if not PurePosixPath(member.name).parts:
                continue  # the folder itself
            path = _inside(folder / safe_name(member.name), folder)
            if path.name == OPAQUE:
                _hide_all(path.parent, brought)
            elif path.name.startswith(WHITEOUT):
                _hide(path.with_name(path.name.removeprefix(WHITEOUT)), brought)
            else:
                budget.take_file(member.size)
                _make_way(path, folder, member.isdir())
                extract(tarred, member, folder)
                brought |= {path, *path.parents}


def _inside(path: Path, folder: Path) -> Path:
    """Raise tarfile.ExtractError where links of earlier layers lead out of the folder."""
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise tarfile.ExtractError(f"{path.relative_to(folder)} would be outside the folder")
    return path


def _make_way(path: Path, folder: Path, is_folder: bool) -> None:
    """Replace links, and files where a folder comes: nothing is written through a link."""
    for parent in path.relative_to(folder).parents:
        if (folder / parent).is_file():
            (folder / parent).unlink()
    if not (is_folder and path.is_dir() and not path.is_symlink()):
        _remove(path)


def _hide_all(folder: Path, brought: set[Path]) -> None:
    if folder.is_dir():
        for path in list(folder.iterdir()):
            _hide(path, brought)


def _hide(path: Path, brought: set[Path]) -> None:
    """Take away what earlier layers brought."""
    if path not in brought:
        _remove(path)
    elif path.is_dir() and not path.is_symlink():
        _hide_all(path, brought)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
