"""Models that a load request brings along: their files live in a folder of the server's own while they are needed."""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath

from argosy_runtime.errors import internal

_PREFIX = "file:"


class OverridePathError(Exception):
    """A parameter of a load request that names no file inside the model's folder."""


class OverrideStore:
    """The files of `load` requests, below one temporary folder. A model's folder is removed with its last holder."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._holders: Counter[Path] = Counter()
        self._removals: set[asyncio.Future[None]] = set()

    async def write(self, name: str, override: str | None, files: Mapping[str, bytes]) -> Path:
        """Write the files of a load request to a new folder of the model. Return the folder, held by the caller.

        `files` maps "file:<version>/<name>" to content. `name` is one that `layout.is_model_name` accepts.
        Raises ServingError, OverridePathError, or OSError of the disk, and then leaves nothing behind.
        """
        if override is None:
            raise internal(
                f"failed to load '{name}', failed to poll from model repository: a load request with files "
                "needs the parameter 'config'"
            )
        content = {_relative(key): value for key, value in files.items()}
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="argosy-override-", ignore_cleanup_errors=True)
        path = await asyncio.to_thread(_write, self._folder.name, name, content)
        self._holders[path] = 1
        return path

    def hold(self, path: Path) -> None:
        """Add a holder of a model's folder; folders of the repositories are never removed."""
        if path in self._holders:
            self._holders[path] += 1

    def release(self, path: Path) -> None:
        """Remove a holder; after the last one the folder is removed, in a thread."""
        if path not in self._holders:
            return
        self._holders[path] -= 1
        if not self._holders[path]:
            del self._holders[path]
            removal = asyncio.get_running_loop().run_in_executor(None, _remove, path.parent)
            self._removals.add(removal)
            removal.add_done_callback(self._removals.discard)

    async def clear(self) -> None:
        """Remove everything."""
        await asyncio.gather(*self._removals)
        self._holders.clear()
        if self._folder is not None:
            await asyncio.to_thread(self._folder.cleanup)
            self._folder = None


def _write(below: str, name: str, content: Mapping[PurePosixPath, bytes]) -> Path:
    parent = Path(tempfile.mkdtemp(dir=below))
    try:
        for relative, data in content.items():
            path = parent / name / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    except BaseException:
        _remove(parent)
        raise
    return parent / name


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _relative(key: str) -> PurePosixPath:
    """Return the normal form of a file's path below the model's folder. Raises OverridePathError."""
    path = PurePosixPath(normpath(key.removeprefix(_PREFIX).lstrip("/")))
    if not key.startswith(_PREFIX) or "\0" in key or not path.parts or path.parts[0] == "..":
        raise OverridePathError(
            f"Invalid file parameter '{key}' with normalized path '{path}' must stay within model directory."
        )
    return path
