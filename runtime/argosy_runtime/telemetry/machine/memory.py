"""Memory that models use: of their processes, with all that these have started, on the host and on GPUs.

On the host it is the proportional set size: of a page that several processes share, each counts its part. Models in
threads of the server share its memory, and are not measured.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Final, TypeAlias

import psutil
import pynvml
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.telemetry.exposition import Family

_log = logging.getLogger("argosy.telemetry")
MEASURE_SECONDS: Final = 15.0
"""Between two measurements: to read the maps of a process of many gigabytes takes tens of milliseconds."""

_SHARE: Final = 0.02
"""The most of the time that measurements may take: those of many models come less often."""

Version: TypeAlias = tuple[str, int]
"""A model's identifier, and the number of a version."""
Processes: TypeAlias = Callable[[], Mapping[Version, Sequence[int]]]
"""Returns the processes of each version that has some; called on the event loop."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes on the host, and on each GPU by its ordinal, measured `at` a time in seconds since 1970."""

    host: int
    gpus: Mapping[int, int] = field(default_factory=dict)
    at: float = 0.0

    @property
    def total(self) -> int:
        """Bytes in all memories together."""
        return self.host + sum(self.gpus.values())

    def messages(self) -> list[pb.MemoryUsage]:
        """Return the entries of `memory_usage` in the statistics of a model."""
        host = [pb.MemoryUsage(type="CPU", id=0, byte_size=self.host)] if self.host else []
        return host + [pb.MemoryUsage(type="GPU", id=gpu, byte_size=size) for gpu, size in sorted(self.gpus.items())]


class ModelMemory:
    """The newest measurement of each version. `gpus`: UUIDs by ordinal. All methods run on the event loop."""

    def __init__(self, processes: Processes, gpus: Mapping[int, str], interval: float = MEASURE_SECONDS) -> None:
        self._processes = processes
        self._gpus = gpus
        self._interval = interval
        self._uses: dict[Version, MemoryUse] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Measure all versions again and again."""
        self._task = asyncio.get_running_loop().create_task(self._repeat())

    def stop(self) -> None:
        """End the measurements."""
        if self._task is not None:
            self._task.cancel()

    async def measure(self, model: str = "") -> None:
        """Measure all versions, or those of one model, in a thread."""
        processes = {key: pids for key, pids in self._processes().items() if model in ("", key[0])}
        uses = await asyncio.to_thread(_uses, processes, self._gpus)
        retained = {key: use for key, use in self._uses.items() if model and key[0] != model}
        self._uses = retained | uses

    def of(self, model: str, version: int) -> MemoryUse | None:
        """Return the newest measurement of a version; None where there is none."""
        return self._uses.get((model, version))

    def messages_of(self, model: str, version: int) -> list[pb.MemoryUsage]:
        """Return the entries of `memory_usage` in the statistics of a version; none where it was not measured."""
        use = self.of(model, version)
        return [] if use is None else use.messages()

    def of_model(self, model: str) -> int:
        """Return the bytes that the versions of a model use together; 0 where none was measured."""
        return sum(use.total for key, use in self._uses.items() if key[0] == model)

    def families(self) -> list[Family]:
        """Return the metrics of the newest measurements."""
        used = Family("argosy_model_memory_bytes", "Memory of a model's processes, by its type and device", "gauge")
        at = Family("argosy_model_memory_time_seconds", "When it was measured, in seconds since 1970", "gauge")
        for (model, version), use in sorted(self._uses.items()):
            labels = {"model": model, "version": str(version)}
            for entry in use.messages():
                used.add({**labels, "type": entry.type, "device": str(entry.id)}, entry.byte_size)
            at.add(labels, use.at)
        return [used, at]

    async def _repeat(self) -> None:
        took = 0.0
        while True:
            await asyncio.sleep(max(self._interval, took / _SHARE))
            begun = monotonic()
            try:
                await self.measure()
            except Exception:
                _log.exception("the memory of models cannot be measured")
            took = monotonic() - begun


def _uses(processes: Mapping[Version, Sequence[int]], gpus: Mapping[int, str]) -> dict[Version, MemoryUse]:
    """Measure processes. Blocks on the kernel and the driver."""
    if not processes:
        return {}
    on_gpus, children = _gpu_processes(gpus), _children()
    uses: dict[Version, MemoryUse] = {}
    for version, pids in processes.items():
        family = {pid for one in pids for pid in _with_descendants(one, children)}
        shares = {gpu: sum(of.get(pid, 0) for pid in family) for gpu, of in on_gpus.items()}
        host = sum(map(_proportional_bytes, family))
        uses[version] = MemoryUse(host, {gpu: size for gpu, size in shares.items() if size}, time())
    return uses


def _children() -> dict[int, list[int]]:
    """Return the children of every process, in one pass over all of them."""
    children: dict[int, list[int]] = {}
    for process in psutil.process_iter(["ppid"]):
        children.setdefault(process.info["ppid"] or 0, []).append(process.pid)
    return children


def _with_descendants(pid: int, children: Mapping[int, Sequence[int]]) -> list[int]:
    descendants = [pid]
    for one in descendants:
        descendants += children.get(one, ())
    return descendants


def _proportional_bytes(pid: int) -> int:
    """Return the proportional set size of a process; 0 where it has ended, or the kernel does not say."""
    try:
        return int(psutil.Process(pid).memory_full_info().pss)
    except (psutil.Error, AttributeError):
        return 0


def _gpu_processes(gpus: Mapping[int, str]) -> dict[int, dict[int, int]]:
    """Return the bytes of each process on each GPU, as far as the driver tells.

    The driver knows processes by their numbers on the host, which are those of a container only if it shares them.
    """
    on_gpus: dict[int, dict[int, int]] = {}
    with suppress(pynvml.NVMLError):
        if gpus:
            pynvml.nvmlInit()
        for ordinal, uuid in gpus.items():
            running = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByUUID(uuid))
            on_gpus[ordinal] = {one.pid: int(one.usedGpuMemory or 0) for one in running}
    return on_gpus
