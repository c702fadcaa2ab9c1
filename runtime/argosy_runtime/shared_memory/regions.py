"""The regions of shared memory that clients have registered, and the requests that use them.

A region that is unregistered while requests use it stays, for further requests too, until it has no user left.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, Protocol

from argosy_runtime.errors import ErrorKind, ServingError, invalid, not_found, unavailable, unsupported
from argosy_runtime.tensors import Data
from argosy_runtime.tensors.buffers import BufferPool

from .checks import check_key, check_location, check_name

MOST_REGIONS: Final = 4096
MOST_COPIED: Final = 1 << 31
"""Bytes of inputs that may be copied out of regions for requests without an answer."""
DISABLED: Final = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."


class RegionKind(StrEnum):
    """Where a region lies: in the system's memory, or in a GPU's by CUDA."""

    SYSTEM = "system"
    CUDA = "cuda"


_WORDS: Final = {RegionKind.SYSTEM: "system", RegionKind.CUDA: "CUDA"}


class MemoryLostError(Exception):
    """A region's memory is not there any more, or less of it. The message says what is wrong."""


class RegionMemory(Protocol):
    """The memory of one region. Offsets are counted from the region's beginning, and are in it."""

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill a buffer, which is not empty, with a copy. Raises MemoryLostError, OSError or ServingError."""

    def write(self, offset: int, data: Data) -> None:
        """Copy the data into the memory. Raises as `read_into`."""

    def close(self) -> None:
        """Give the memory up. Nothing is read or written afterwards."""


class Region:
    """A registered region of `size` bytes. `key` and `offset` are those of system memory, `device` is a GPU's ordinal.

    `users` counts the locations of running requests in it; `leaving`: it is removed once there are none.
    """

    __slots__ = ("_buffers", "_memory", "device", "key", "kind", "leaving", "name", "offset", "size", "users")

    def __init__(
        self,
        name: str,
        kind: RegionKind,
        size: int,
        memory: RegionMemory,
        buffers: BufferPool,
        key: str = "",
        offset: int = 0,
        device: int = 0,
    ) -> None:
        self.name = name
        self.kind = kind
        self.size = size
        self.key = key
        self.offset = offset
        self.device = device
        self.users = 0
        self.leaving = False
        self._memory = memory
        self._buffers = buffers

    def read(self, offset: int, size: int) -> Data:
        """Return a copy of a checked location. Raises INVALID_ARG where memory is lost, UNAVAILABLE without room."""
        if not size:
            return b""
        try:
            buffer = self._buffers.take(size)
            self._memory.read_into(offset, buffer)
            return buffer.toreadonly()
        except (MemoryLostError, OSError) as error:
            raise invalid(f"cannot read shared memory region '{self.name}': {error}") from None
        except MemoryError:
            raise unavailable(f"no memory for a copy of {size} bytes of shared memory region '{self.name}'") from None

    def write(self, offset: int, data: Data) -> None:
        """Write into a checked location. Raises INVALID_ARG where the memory is lost, or the system has no more."""
        try:
            self._memory.write(offset, data)
        except (MemoryLostError, OSError) as error:
            raise invalid(f"cannot write shared memory region '{self.name}': {error}") from None

    def close(self) -> None:
        """Give the memory up."""
        self._memory.close()


OpenSystem = Callable[[str, str, int, int], RegionMemory]
"""Opens system memory for a region: its name, key, offset and size. Raises ServingError."""
OpenCuda = Callable[[str, bytes, int, int], RegionMemory]
"""Opens memory of a GPU for a region: its name, CUDA's handle, the GPU's ordinal, the size. Raises ServingError."""


class ClientRegions:
    """All regions, by name. Methods are called on the event loop."""

    def __init__(
        self,
        open_system: OpenSystem,
        open_cuda: OpenCuda,
        *,
        allowed: bool = False,
        most_regions: int = MOST_REGIONS,
        most_copied: int = MOST_COPIED,
        buffers: BufferPool | None = None,
    ) -> None:
        self._open_system = open_system
        self._open_cuda = open_cuda
        self._allowed = allowed
        self._most_regions = most_regions
        self._most_copied = most_copied
        self._copied = 0
        self._buffers = buffers or BufferPool()
        self._regions: dict[str, Region] = {}

    def register_system(self, name: str, key: str, offset: int, size: int) -> None:
        """Register memory under a key of the system's (`shm_open`). Raises ServingError."""
        self.require_allowed()
        check_key(name, key)
        self._require_free(name)
        memory = self._open_system(name, key, offset, size)
        self._regions[name] = Region(name, RegionKind.SYSTEM, size, memory, self._buffers, key=key, offset=offset)

    def register_cuda(self, name: str, handle: bytes, device: int, size: int) -> None:
        """Register memory of a GPU by CUDA's handle of it. Raises ServingError."""
        self.require_allowed()
        self._require_free(name)
        memory = self._open_cuda(name, handle, device, size)
        self._regions[name] = Region(name, RegionKind.CUDA, size, memory, self._buffers, device=device)

    def unregister(self, kind: RegionKind, name: str) -> None:
        """Unregister a region, or all of a kind with the name "". Unknown names are ignored. Raises UNSUPPORTED."""
        self.require_allowed()
        for region in list(self._regions.values()):
            if region.kind is kind and name in ("", region.name):
                region.leaving = True
                self._remove_unused(region)

    def status(self, kind: RegionKind, name: str = "") -> list[Region]:
        """Return a region, or all of a kind in the order of their names. Raises NOT_FOUND."""
        if not name:
            return sorted((region for region in self._regions.values() if region.kind is kind), key=_name)
        region = self._regions.get(name)
        if region is None:
            raise not_found(f"Unable to find {kind} shared memory region: '{name}'")
        if region.kind is not kind:
            raise not_found(
                f"The region named '{name}' is registered as {_WORDS[region.kind]} shared memory, not {_WORDS[kind]} "
                "shared memory"
            )
        return [region]

    def use(self, name: str, offset: int, size: int) -> Region:
        """Return the region of a location, which stays at least until `end_use`. Raises ServingError."""
        region = self._regions.get(name)
        if region is None:
            raise not_found(f"Unable to find shared memory region: '{name}'")
        check_location(name, region.size, offset, size)
        region.users += 1
        return region

    def end_use(self, region: Region) -> None:
        """End one use of a region."""
        region.users -= 1
        self._remove_unused(region)

    def reserve(self, size: int) -> None:
        """Count bytes that a request copies, until `free`. Raises UNAVAILABLE where all requests copy too many."""
        if self._copied + size > self._most_copied:
            raise unavailable(
                f"requests without an answer hold {self._copied} bytes of copies from shared memory, and {size} bytes "
                f"more would exceed {self._most_copied}"
            )
        self._copied += size

    def free(self, size: int) -> None:
        """Take reserved bytes back."""
        self._copied -= size

    def close(self) -> None:
        """Give all memory up: there are no requests any more."""
        for region in self._regions.values():
            region.close()
        self._regions.clear()

    def require_allowed(self) -> None:
        """Raise UNSUPPORTED unless clients may register regions."""
        if not self._allowed:
            raise unsupported(DISABLED)

    def _require_free(self, name: str) -> None:
        check_name(name)
        if name in self._regions:
            raise ServingError(ErrorKind.ALREADY_EXISTS, f"shared memory region '{name}' already in manager")
        if len(self._regions) >= self._most_regions:
            raise unavailable(
                f"cannot register shared memory region '{name}': there are {self._most_regions}, the most of a server"
            )

    def _remove_unused(self, region: Region) -> None:
        if region.leaving and not region.users and self._regions.get(region.name) is region:
            del self._regions[region.name]
            region.close()


def _name(region: Region) -> str:
    return region.name
