"""Memory that models use: of their processes, with all that these have started, on the host and on GPUs.

On the host it is the proportional set size: of a page that several processes share, each counts its part. Models in
threads of the server share its memory, and are not measured. On a GPU `attribution.py` says which bytes are whose. A
measurement of GPUs that fails leaves the last one of the same processes, with its time.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Final, TypeAlias

import psutil
import pynvml
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.telemetry.exposition import Family
from argosy_runtime.telemetry.machine.attribution import GpuReading, OnGpu, Version, VersionProcesses, attributed

_log = logging.getLogger("argosy.telemetry")
MEASURE_SECONDS: Final = 15.0
"""Between two measurements: to read the maps of a process of many gigabytes takes tens of milliseconds."""

_SHARE: Final = 0.02
"""The most of the time that measurements may take: those of many models come less often."""

Processes: TypeAlias = Callable[[], Mapping[Version, Sequence[int]]]
"""Returns the processes of each version that has some; called on the event loop."""
OnGpus: TypeAlias = Callable[[], Mapping[Version, Mapping[int, OnGpu]]]
"""Returns the instances of each version that is on GPUs, by ordinal; called on the event loop."""


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

    def __init__(
        self,
        processes: Processes,
        gpus: Mapping[int, str],
        on_gpus: OnGpus = dict,
        interval: float = MEASURE_SECONDS,
    ) -> None:
        self._processes = processes
        self._gpus = gpus
        self._on_gpus = on_gpus
        self._interval = interval
        self._uses: dict[Version, MemoryUse] = {}
        self._measured: dict[Version, Sequence[int]] = {}
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
        every, on_gpus = dict(self._processes()), self._on_gpus()
        processes = {key: pids for key, pids in every.items() if model in ("", key[0])}
        same = {key: use for key, use in self._uses.items() if self._measured.get(key) == processes.get(key)}
        uses = await asyncio.to_thread(_uses, processes, every, self._gpus, on_gpus, same)
        retained = {key: use for key, use in self._uses.items() if model and key[0] != model}
        self._uses = retained | uses
        self._measured = {key: every[key] for key in self._uses if key in every}

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
        """Return the metrics of the newest measurements, without those of processes that have ended since."""
        present = self._processes()
        used = Family("argosy_model_memory_bytes", "Memory of a model's processes, by its type and device", "gauge")
        at = Family("argosy_model_memory_time_seconds", "When it was measured, in seconds since 1970", "gauge")
        for (model, version), use in sorted(self._uses.items()):
            if self._measured.get((model, version)) != present.get((model, version)):
                continue
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


def _uses(
    processes: Mapping[Version, Sequence[int]],
    every: Mapping[Version, Sequence[int]],
    gpus: Mapping[int, str],
    on_gpus: Mapping[Version, Mapping[int, OnGpu]],
    before: Mapping[Version, MemoryUse],
) -> dict[Version, MemoryUse]:
    """Measure `processes`; those of `every` version tell what is whose. Blocks on the kernel and the driver.

    `before`: the last measurements of the same processes.
    """
    if not processes:
        return {}
    children = _children()
    families = {key: {one for pid in pids for one in _with_descendants(pid, children)} for key, pids in every.items()}
    readings = {gpu: _reading(uuid) for gpu, uuid in gpus.items()}
    failed = {gpu for gpu, reading in readings.items() if reading is None}
    shares = _shares({gpu: one for gpu, one in readings.items() if one is not None}, families, on_gpus)
    uses: dict[Version, MemoryUse] = {}
    for version in processes:
        last = before.get(version)
        if last is not None and failed & last.gpus.keys():
            uses[version] = last
        else:
            host = sum(map(_proportional_bytes, families[version]))
            uses[version] = MemoryUse(host, shares.get(version, {}), time())
    return uses


def _shares(
    readings: Mapping[int, GpuReading],
    families: Mapping[Version, Collection[int]],
    on_gpus: Mapping[Version, Mapping[int, OnGpu]],
) -> dict[Version, dict[int, int]]:
    """Return the bytes of each version on each GPU."""
    shares: dict[Version, dict[int, int]] = {}
    for gpu, reading in readings.items():
        versions = {
            version: VersionProcesses(families.get(version, ()), on_gpu)
            for version, of_version in on_gpus.items()
            if (on_gpu := of_version.get(gpu)) is not None
        }
        others = {
            version: VersionProcesses(family, OnGpu(0))
            for version, family in families.items()
            if version not in versions
        }
        for version, size in attributed(reading, versions, others).items():
            shares.setdefault(version, {})[gpu] = size
    return shares


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


def _reading(uuid: str) -> GpuReading | None:
    """Return what the driver says of a GPU now; None where it does not answer."""
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        used = int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    except pynvml.NVMLError:
        return None
    processes = {one.pid: int(one.usedGpuMemory or 0) for one in running}
    return GpuReading(used, processes, frozenset(filter(psutil.pid_exists, processes)))
