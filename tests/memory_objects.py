"""Memory objects in /dev/shm, as clients create them, under names that no other test has."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

FOLDER = Path("/dev/shm")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class MemoryObject:
    """One object. `name` is that of its file; `key`: how a client registers it."""

    name: str

    @property
    def key(self) -> str:
        """The key that `shm_open` takes."""
        return f"/{self.name}"

    @property
    def path(self) -> Path:
        """Its file."""
        return FOLDER / self.name

    def read(self, offset: int = 0, size: int = -1) -> bytes:
        """Return its bytes."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def write(self, data: bytes, offset: int = 0) -> None:
        """Change its bytes, as a client does while the server has it open."""
        with self.path.open("r+b") as file:
            file.seek(offset)
            file.write(data)

    def resize(self, size: int) -> None:
        """Make it shorter or longer."""
        os.truncate(self.path, size)


@contextmanager
def memory_object(content: bytes) -> Iterator[MemoryObject]:
    """Yield an object with this content, which is deleted at the end if it is still there."""
    made = MemoryObject(f"argosy-test-{uuid4().hex}")
    made.path.write_bytes(content)
    try:
        yield made
    finally:
        made.path.unlink(missing_ok=True)
