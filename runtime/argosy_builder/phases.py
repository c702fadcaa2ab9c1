"""A builder's phases, each run once: a finished phase is found again here, or in the store, and not repeated."""

import fcntl
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from argosy_agent.contract.builds import BuildFailure
from argosy_agent.transfer.archives import flush
from argosy_agent.transfer.errors import StorageError, is_full

from .contract import BuildError, Phase, Workspace

PARTIAL = ".partial"


class PhaseStore(Protocol):
    """The port for the outputs of finished phases, outside of the workspace."""

    def load_phase(self, key: str, phase: str, folder: Path) -> bool:
        """Fetch a phase's output into `folder`, which does not exist; return False where there is none.

        Raises StorageError.
        """

    def save_phase(self, key: str, phase: str, folder: Path) -> None:
        """Save a phase's output. Raises StorageError."""


class Phases:
    """The phases of the engine `key`, in `folder`. `log` receives lines for people."""

    def __init__(self, folder: Path, key: str, store: PhaseStore, log: Callable[[str], None]) -> None:
        self._folder, self._key, self._store, self._log = folder / key, key, store, log

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder: another build of the same engine waits, and then uses the results of this one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._folder.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._log("another build of this engine works here; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def run(self, phases: Sequence[Phase], begin: Callable[[Phase, int, int], None]) -> Path:
        """Run the phases, and return the last one's output.

        `begin` is called with each phase and its share of all, from percent to percent. Raises BuildError; what was
        finished before stays.
        """
        done = 0
        total = sum(phase.weight for phase in phases)
        finished: dict[str, Path] = {}
        for phase in phases:
            begin(phase, 100 * done // total, 100 * (done + phase.weight) // total)
            finished[phase.name] = self._output(phase, finished)
            done += phase.weight
        return finished[phases[-1].name]

    def drop(self) -> None:
        """Remove the outputs of phases here."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _output(self, phase: Phase, finished: dict[str, Path]) -> Path:
        folder = self._folder / phase.name
        if not folder.is_dir() and not self._loaded(phase, folder):
            self._run(phase, Workspace(self._emptied(folder), dict(finished)), folder)
            self._save(phase, folder)
        return folder

    def _emptied(self, folder: Path) -> Path:
        partial = folder.with_name(folder.name + PARTIAL)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        return partial

    def _run(self, phase: Phase, workspace: Workspace, folder: Path) -> None:
        try:
            phase.run(workspace)
            flush(workspace.out)
        except OSError as error:
            shutil.rmtree(workspace.out, ignore_errors=True)
            if is_full(error):
                raise BuildError(
                    BuildFailure.DISK_FULL, f"phase {phase.name}: the disk of the build is full: {error}"
                ) from error
            raise
        workspace.out.rename(folder)

    def _loaded(self, phase: Phase, folder: Path) -> bool:
        partial = folder.with_name(folder.name + PARTIAL)
        shutil.rmtree(partial, ignore_errors=True)
        try:
            if not self._store.load_phase(self._key, phase.name, partial):
                return False
        except StorageError as error:
            self._log(f"what an earlier try left of {phase.name} cannot be had, so it runs again: {error}")
            return False
        partial.rename(folder)
        return True

    def _save(self, phase: Phase, folder: Path) -> None:
        """Save a phase; a store that takes no phase may still take the engine, and fails then if not."""
        try:
            self._store.save_phase(self._key, phase.name, folder)
        except StorageError as error:
            self._log(f"{phase.name} is finished, but not kept for another try: {error}")
