"""The memory of a server with all the processes that it has started, on the host and on GPUs."""

from collections.abc import Sequence
from contextlib import suppress

import psutil
import pynvml

from argosy.bench.profile.points import Memory


class MemoryMeter:
    """Measures what a server takes in addition to what it took before its model was loaded.

    `server`: its process, None where that is not known; `gpus`: UUIDs of this machine's. Blocks on the kernel and the
    driver.
    """

    def __init__(self, server: int | None, gpus: Sequence[str]) -> None:
        self._server, self._gpus = server, gpus
        self._host, self._used = _host(self._family()), {gpu: _used(gpu) for gpu in gpus}

    def read(self) -> Memory:
        """Return the bytes now, on the GPU where they are the most. No growth at all is no measurement."""
        family = self._family()
        host = max(0, _host(family) - self._host)
        return Memory(host or None, max((self._on_gpu(gpu, set(family)) for gpu in self._gpus), default=0) or None)

    def _on_gpu(self, gpu: str, family: set[int]) -> int:
        """Return the bytes of the server's processes on a GPU. Where the driver does not know them by these numbers, as
        in a container, it is what the whole GPU has in addition.
        """
        return _of_processes(gpu, family) or max(0, _used(gpu) - self._used[gpu])

    def _family(self) -> list[int]:
        if self._server is None:
            return []
        with suppress(psutil.Error):
            server = psutil.Process(self._server)
            return [self._server, *(child.pid for child in server.children(recursive=True))]
        return []


def _host(family: Sequence[int]) -> int:
    """Return the memory of processes together; those that have ended count for nothing."""
    return sum(map(_bytes, family))


def _bytes(pid: int) -> int:
    """Return a process's proportional set size; where the kernel does not show it, as in a container, its resident."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        with suppress(psutil.AccessDenied):
            return int(process.memory_full_info().pss)
        return int(process.memory_info().rss)
    return 0


def _of_processes(gpu: str, family: set[int]) -> int:
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByUUID(gpu))
        return sum(int(one.usedGpuMemory or 0) for one in running if one.pid in family)
    return 0


def _used(gpu: str) -> int:
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByUUID(gpu)).used)
    return 0
