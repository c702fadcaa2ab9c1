"""What is installed: each environment is a folder with a record, and a link by the engine's name leads to it.

The link is set last and replaced in one step, so a half-made environment is never used. A process that runs in an
environment goes on in its folder when the link leads to another.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from .recipes import ENGINES, Device

BUILDS: Final = ".builds"
"""The folder, next to the links, that all environments are in."""

_RECORD: Final = "argosy-environment.json"


@dataclass(frozen=True, slots=True)
class Record:
    """What an environment was made of. `packages`: name and version of those that the recipe asks for."""

    engine: str
    device: Device
    requirements: tuple[str, ...]
    python: str
    packages: tuple[str, ...]

    def write(self, folder: Path) -> None:
        """Write it into the environment."""
        (folder / _RECORD).write_text(json.dumps(asdict(self), indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that the server finds. `record` is None where something else has made it."""

    engine: str
    folder: Path
    record: Record | None

    def size(self) -> int:
        """Return the bytes of its files, links not followed."""
        files = (Path(parent) / name for parent, _, names in os.walk(self.folder.resolve()) for name in names)
        return sum(path.lstat().st_size for path in files)


def read_record(folder: Path) -> Record | None:
    """Return the record of an environment; None where it has none that can be read."""
    try:
        fields = json.loads((folder / _RECORD).read_text())
        return Record(
            fields["engine"],
            Device(fields["device"]),
            tuple(fields["requirements"]),
            fields["python"],
            tuple(fields["packages"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def installed(roots: list[Path]) -> Iterator[Installed]:
    """Yield the environments in these folders, in the order in which they are found."""
    for root in roots:
        for engine in ENGINES:
            folder = root / engine
            if os.access(folder / "bin/python", os.X_OK):
                yield Installed(engine, folder, read_record(folder))


def in_use(folder: Path) -> bool:
    """Return whether a process of this machine runs by the interpreter of an environment."""
    begin = f"{folder.resolve()}/".encode()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if process.read_bytes().startswith(begin):
                return True
        except OSError:
            continue
    return False
