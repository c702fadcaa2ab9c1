"""Credentials and endpoints of a source: from this process's environment, or from one Secret alone."""

import os
import re
import threading
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.transfer.errors import StorageError

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A key of a Secret that can be a variable; others are files alone."""


class Variables:
    """The pool's Secret as variables of this process, where the clients of storage look for them.

    The kubelet changes the files of a Secret that is rotated, and never a variable of a container. Thread-safe.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        self._environment = environment
        self._brought: set[str] = set()
        self._lock = threading.Lock()

    def bring(self, folder: Path) -> None:
        """Have the keys in `folder` as variables, as they are now. What the process was started with stays."""
        with self._lock:
            variables = {
                name: text
                for name, text in _keys(folder).items()
                if VARIABLE.fullmatch(name) and (name in self._brought or name not in self._environment)
            }
            for name in self._brought - variables.keys():
                self._environment.pop(name, None)
            for name, text in variables.items():
                if self._environment.get(name) != text:
                    self._environment[name] = text
            self._brought = set(variables)


_OF_PROCESS = Variables(os.environ)


@dataclass(frozen=True, slots=True)
class Settings:
    """Variables by name, and the folder with the files of their Secret.

    `alone`: they are from one model's Secret, and override the environment's settings for the same storage.
    """

    folder: Path
    values: Mapping[str, str]
    alone: bool = False

    @classmethod
    def of_process(cls, folder: Path) -> "Settings":
        """Return the environment, with the pool's Secret at `folder` as it is now."""
        _OF_PROCESS.bring(folder)
        return cls(folder, os.environ)

    @classmethod
    def of_secret(cls, folder: Path) -> "Settings":
        """Return the keys of a Secret that is mounted at `folder`. Raises StorageError where it has none."""
        keys = _keys(folder)
        if not keys:
            name = folder.name
            raise StorageError(f"the Secret {name} of spec.storage.secretName is not there, or is empty: create it")
        return cls(folder, keys, alone=True)

    def first(self, *names: str) -> str:
        """Return the first of these that is set, or nothing."""
        return next((self.values[name] for name in names if self.values.get(name)), "")

    def file(self, *names: str) -> str:
        """Return the path that the first of these gives; of a Secret alone it is one of its own keys, by its
        last part.
        """
        path = self.first(*names)
        return str(self.folder / Path(path).name) if path and self.alone else path


def _keys(folder: Path) -> dict[str, str]:
    """Return the keys of a Secret that is mounted at `folder`, all as of one moment."""
    data = folder / "..data"
    now = data.resolve() if data.exists() else folder
    files = [path for path in now.iterdir() if not path.name.startswith("..")] if now.is_dir() else []
    return {path.name: text for path in files if path.is_file() and (text := _text(path)) is not None}


def _text(path: Path) -> str | None:
    """Return a key's value as a variable has it, without the newline that editors add."""
    try:
        return path.read_text().rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return None
