"""Where a source's credentials and endpoints come from: this process's environment, or one Secret alone."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.transfer.errors import StorageError


@dataclass(frozen=True, slots=True)
class Settings:
    """Variables by name, and the folder with the files of their Secret.

    `alone`: they are those of one model's Secret, and what the environment says of the same storage does not hold.
    """

    folder: Path
    values: Mapping[str, str]
    alone: bool = False

    @classmethod
    def of_process(cls, folder: Path) -> "Settings":
        """The environment, with the pool's Secret at `folder`."""
        return cls(folder, os.environ)

    @classmethod
    def of_secret(cls, folder: Path) -> "Settings":
        """The keys of a Secret that is mounted at `folder`. Raises StorageError where it has none."""
        files = [path for path in folder.iterdir() if not path.name.startswith("..")] if folder.is_dir() else []
        found = {path.name: text for path in files if path.is_file() and (text := _text(path)) is not None}
        if not found:
            name = folder.name
            raise StorageError(f"the Secret {name} of spec.storage.secretName is not there, or is empty: create it")
        return cls(folder, found, alone=True)

    def first(self, *names: str) -> str:
        """The first of these that is set, or nothing."""
        return next((self.values[name] for name in names if self.values.get(name)), "")

    def file(self, *names: str) -> str:
        """The path that the first of these gives; of a Secret alone it is one of its own keys, by its last part."""
        path = self.first(*names)
        return str(self.folder / Path(path).name) if path and self.alone else path


def _text(path: Path) -> str | None:
    """A key's value as a variable has it, without the newline that editors put behind it."""
    try:
        return path.read_text().rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return None
