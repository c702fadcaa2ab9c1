"""Files that builds of one compiler for one architecture share, such as the times of layers, through the store.

They save time and decide nothing: errors are logged, and the build goes on without.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from argosy_agent.contract.builds import digest_of
from argosy_agent.engines.inventory import SHARED
from argosy_agent.engines.store import EngineStore
from argosy_agent.transfer.errors import StorageError

PHASE = SHARED


@contextmanager
def shared(
    store: EngineStore, builder: str, compiler: str, architecture: str, folder: Path, log: Callable[[str], None]
) -> Iterator[Path]:
    """Yield the folder, filled from the store; it is saved there afterwards where it has changed.

    `log` receives errors.
    """
    key = digest_of([PHASE, builder, compiler, architecture])[:32]
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        store.load_phase(key, PHASE, folder)
    except StorageError as error:
        shutil.rmtree(folder, ignore_errors=True)
        log(f"what earlier builds share cannot be had: {error}")
    folder.mkdir(exist_ok=True)
    before = _contents(folder)
    try:
        yield folder
        if _contents(folder) != before:
            _keep(store, key, folder, log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep(store: EngineStore, key: str, folder: Path, log: Callable[[str], None]) -> None:
    try:
        with suppress(StorageError):
            store.drop_phases(key)
        store.save_phase(key, PHASE, folder)
    except StorageError as error:
        log(f"what this build could share is not kept: {error}")


def _contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}
