"""Rendered repositories written to a folder in one step: to a temporary folder, which is then renamed."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import RenderedRepository
from argosy_agent.folder.writing import write_model
from argosy_agent.transfer.errors import StorageError

MARKER = ".argosy-rendered"
"""A file that marks a folder which may be replaced."""


class ExportError(Exception):
    """A model's files cannot be fetched."""


class NotOursError(Exception):
    """The output folder has other contents."""

    def __init__(self, output: Path) -> None:
        super().__init__(
            f"{output} is not empty and was not written by argosy render: name another folder, or empty it"
        )


def export(repositories: Sequence[RenderedRepository], output: Path, with_files: bool = True) -> None:
    """Write `<output>/<server>/<model>/…` with each version's files, and replace an earlier export.

    Without files nothing is fetched, and version folders stay empty. Raises NotOursError or ExportError, and leaves
    `output` unchanged then.
    """
    output = output.absolute()
    if output.exists() and not (output / MARKER).is_file() and (not output.is_dir() or any(output.iterdir())):
        raise NotOursError(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{output.name}-", dir=output.parent))
    try:
        _write(repositories, staging, with_files)
        _swap(staging / "new", output, staging / "old")
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _write(repositories: Sequence[RenderedRepository], staging: Path, with_files: bool) -> None:
    cache, new = staging / "cache", staging / "new"
    cache.mkdir()
    new.mkdir()
    (new / MARKER).write_text("Written by argosy render, which replaces this folder as a whole.\n")
    storage = Storage(cache)
    for repository in repositories:
        (new / repository.server).mkdir()
        for model in repository.models:
            sources = {v: s for v, s in model.versions.items() if with_files and s.uri}
            try:
                files = {version: storage.fetch(source.uri, source.digest) for version, source in sources.items()}
            except StorageError as error:
                raise ExportError(f"{model.name}: {error}") from error
            write_model(model, files, new / repository.server / model.name)


def _swap(new: Path, output: Path, old: Path) -> None:
    if output.exists():
        output.rename(old)
    new.rename(output)
