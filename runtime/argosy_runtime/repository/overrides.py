"""Models that a load request brings along: their files live in a folder of the server's own until it ends."""

import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from argosy_runtime.errors import ServingError, invalid

_PREFIX = "file:"


class OverrideStore:
    """Writes the files of `load` requests below one temporary folder."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def write(self, name: str, override: str | None, files: Mapping[str, bytes]) -> Path:
        """The model's new folder. `files` maps "file:<version>/<name>" to content. Raises ServingError."""
        if override is None:
            raise invalid(
                f"failed to load '{name}', failed to poll from model repository: a load request with files "
                "needs the parameter 'config'"
            )
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="argosy-override-")
        root = Path(tempfile.mkdtemp(dir=self._folder.name)) / PurePosixPath(name).name
        for key, content in files.items():
            path = root / _relative(key)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return root

    def clear(self) -> None:
        """Remove everything."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _relative(key: str) -> PurePosixPath:
    path = PurePosixPath(key.removeprefix(_PREFIX))
    if not key.startswith(_PREFIX) or path.is_absolute() or not path.parts or ".." in path.parts:
        raise _bad_path(key)
    return path


def _bad_path(key: str) -> ServingError:
    return invalid(f"override file '{key}' must be named 'file:<version>/<file>' and stay inside the model's folder")
