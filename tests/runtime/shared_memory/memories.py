"""Memory of regions in this process, in location of the system's and a GPU's."""

from argosy_runtime.errors import invalid
from argosy_runtime.shared_memory.regions import MemoryLostError, RegionMemory
from argosy_runtime.tensors import Data


def read(memory: RegionMemory, offset: int, size: int) -> bytes:
    """Return a copy of so many bytes of a region's memory."""
    buffer = bytearray(size)
    memory.read_into(offset, memoryview(buffer))
    return bytes(buffer)


class PlayedMemory:
    """Memory that can be lost, and knows whether it was given up."""

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)
        self.lost = False
        self.closed = 0

    def read_into(self, offset: int, buffer: memoryview) -> None:
        self._check()
        buffer[:] = self.content[offset : offset + len(buffer)]

    def write(self, offset: int, data: Data) -> None:
        self._check()
        self.content[offset : offset + len(data)] = data

    def close(self) -> None:
        self.closed += 1

    def _check(self) -> None:
        assert not self.closed
        if self.lost:
            raise MemoryLostError("it is gone")


class Memories:
    """Opens memories, and keeps them by the name of their region."""

    def __init__(self) -> None:
        self.opened: dict[str, PlayedMemory] = {}

    def open_system(self, name: str, key: str, offset: int, size: int) -> PlayedMemory:
        """Open memory under any key."""
        return self._open(name, size)

    def open_cuda(self, name: str, handle: bytes, device: int, size: int) -> PlayedMemory:
        """Open memory of device 0, and of no other."""
        if device:
            raise invalid("failed to register shared memory region: invalid args")
        return self._open(name, size)

    def _open(self, name: str, size: int) -> PlayedMemory:
        self.opened[name] = PlayedMemory(bytes(size))
        return self.opened[name]
