"""What builds of one compiler for one architecture have in common, such as the times of layers, through the store.

It saves time and decides nothing: whatever is wrong with it is told, and the build goes on without.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from argosy_agent.contract.builds import digest_of
from argosy_agent.engines.inventory import SHARED
from argosy_agent.transfer.errors import StorageError

PHASE = SHARED


class SharedStore(Protocol):
    """Where it is kept: as the output of a phase, under a key of its own."""

    def load_phase(self, key: str, phase: str, folder: Path) -> bool:
        """See `PhaseStore`."""

    def save_phase(self, key: str, phase: str, folder: Path) -> None:
        """See `PhaseStore`."""

    def drop_phases(self, key: str) -> None:
        """Remove what is kept under the key. Raises StorageError."""


@contextmanager
def shared(
    store: SharedStore, builder: str, compiler: str, architecture: str, folder: Path, said: Callable[[str], None]
) -> Iterator[Path]:
    """The folder, filled from the store; kept there afterwards where it has changed. `said` is told what went wrong."""
    key = digest_of([PHASE, builder, compiler, architecture])[:32]
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        store.load_phase(key, PHASE, folder)
    except StorageError as error:
        shutil.rmtree(folder, ignore_errors=True)
        said(f"what earlier builds share cannot be had: {error}")
    folder.mkdir(exist_ok=True)
    before = _contents(folder)
    try:
        yield folder
        if _contents(folder) != before:
            _keep(store, key, folder, said)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep(store: SharedStore, key: str, folder: Path, said: Callable[[str], None]) -> None:
    try:
        with suppress(StorageError):
            store.drop_phases(key)
        store.save_phase(key, PHASE, folder)
    except StorageError as error:
        said(f"what this build could share is not kept: {error}")


def _contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


__all__ = ["SharedStore", "shared"]
