"""The state folder of `argosy up`.

lock               locked by the running `argosy up`; contains its process id
status.json        every resource with its status, as `argosy get` prints it
cache/<key>/       verified copies of model files
servers/<name>/    repository/, process.json, control-token, applied.json, server.log
builds/<name>/     a build of an engine: request, report, log, workspace
engines/           finished engines of pools without an engine cache
requests/          annotations.json: what `argosy rollout` asks of the running `argosy up`
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy_agent.jsonfiles import read_json, write_json

DEFAULT_STATE = Path(".argosy")


class StateInUseError(Exception):
    """Another `argosy up` uses this state folder."""

    def __init__(self, root: Path, pid: str) -> None:
        super().__init__(f"argosy up already runs on {root} (pid {pid or 'unknown'}): stop it, or pass another --state")


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The paths below one root, the lock and the status file."""

    root: Path

    @property
    def cache(self) -> Path:
        """The folder of cached model files."""
        return self.root / "cache"

    @property
    def servers(self) -> Path:
        """The folder with a folder for each server."""
        return self.root / "servers"

    @property
    def builds(self) -> Path:
        """The folder with a folder for each build of an engine."""
        return self.root / "builds"

    @property
    def engines(self) -> Path:
        """The engine cache of pools without one."""
        return self.root / "engines"

    @property
    def status_file(self) -> Path:
        """The file with every resource and its status."""
        return self.root / "status.json"

    @property
    def requests(self) -> Path:
        """The folder of what commands ask of the running `argosy up`."""
        return self.root / "requests"

    @property
    def annotations_file(self) -> Path:
        """The file with the annotations that commands set, by the resource's identity."""
        return self.requests / "annotations.json"

    def server(self, name: str) -> Path:
        """Return the folder of the server `name`."""
        return self.servers / name

    def create(self) -> None:
        """Create the folders, with a .gitignore."""
        for folder in (self.cache, self.servers):
            folder.mkdir(parents=True, exist_ok=True)
        ignore = self.root / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this process.

        Raises StateInUseError with the owner's pid. The lock of a process ends with it.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        path = self.root / "lock"
        with path.open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StateInUseError(self.root, path.read_text().strip()) from None
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            yield
            lock.truncate(0)

    def is_locked(self) -> bool:
        """Return whether an `argosy up` uses this folder now."""
        try:
            with (self.root / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace status.json atomically."""
        write_json(self.status_file, status)

    def read_status(self) -> dict[str, Any] | None:
        """Return what the last `argosy up` wrote, or None."""
        return read_json(self.status_file)
