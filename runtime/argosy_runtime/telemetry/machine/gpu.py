"""Triton's metrics of GPUs (`nv_gpu_*`, `nv_energy_consumption`), read by NVML, a part of the driver."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import pynvml

from argosy_runtime.telemetry.exposition import Family

_MILLI: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that the server may use: `index` is the server's own count."""

    index: int
    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class GpuSample:
    """The measurements of one GPU: busy share (0 to 1), bytes, watts, joules since the server started.

    None where the driver reports nothing, as for the utilization of a part of a GPU (MIG).
    """

    utilization: float | None = None
    memory_total: int | None = None
    memory_used: int | None = None
    power_usage: float | None = None
    power_limit: float | None = None
    energy: float | None = None


class GpuReader:
    """Reads the GPUs of this server. NVML stays open, because opening it takes longer than a reading."""

    def __init__(self, gpus: Iterable[Gpu]) -> None:
        self._gpus = list(gpus)
        self._energy_at_start: dict[str, float] = {}
        self._open = False

    def read(self) -> list[Family]:
        """Return the families now. Raises pynvml.NVMLError where the driver is gone."""
        if self._gpus and not self._open:
            pynvml.nvmlInit()
            self._open = True
        return gpu_families([(gpu, self._sample(gpu)) for gpu in self._gpus])

    def _sample(self, gpu: Gpu) -> GpuSample:
        handle = _queried(pynvml.nvmlDeviceGetHandleByUUID, gpu.uuid)
        if handle is None:
            return GpuSample()
        rates = _queried(pynvml.nvmlDeviceGetUtilizationRates, handle)
        memory = _queried(pynvml.nvmlDeviceGetMemoryInfo, handle)
        return GpuSample(
            utilization=None if rates is None else rates.gpu / 100,
            memory_total=None if memory is None else int(memory.total),
            memory_used=None if memory is None else int(memory.used),
            power_usage=_thousandths(_queried(pynvml.nvmlDeviceGetPowerUsage, handle)),
            power_limit=_thousandths(_queried(pynvml.nvmlDeviceGetPowerManagementLimit, handle)),
            energy=self._energy(gpu, _thousandths(_queried(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle))),
        )

    def _energy(self, gpu: Gpu, since_driver: float | None) -> float | None:
        if since_driver is None:
            return None
        return since_driver - self._energy_at_start.setdefault(gpu.uuid, since_driver)


def _queried(query: Callable[..., Any], argument: Any) -> Any:
    """Return the driver's answer, None where it has none."""
    try:
        return query(argument)
    except pynvml.NVMLError:
        return None


def _thousandths(value: float | None) -> float | None:
    return None if value is None else value * _MILLI


_FAMILIES: Final = (
    ("nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", "gauge", "utilization"),
    ("nv_gpu_memory_total_bytes", "GPU total memory, in bytes", "gauge", "memory_total"),
    ("nv_gpu_memory_used_bytes", "GPU used memory, in bytes", "gauge", "memory_used"),
    ("nv_gpu_power_usage", "GPU power usage in watts", "gauge", "power_usage"),
    ("nv_gpu_power_limit", "GPU power management limit in watts", "gauge", "power_limit"),
    ("nv_energy_consumption", "GPU energy consumption in joules since the server started", "counter", "energy"),
)


def gpu_families(samples: Iterable[tuple[Gpu, GpuSample]] = ()) -> list[Family]:
    """Return the families with the values that are not None. `argosy_gpu_info` relates indexes to Triton's UUIDs."""
    measured = list(samples)
    info = Family("argosy_gpu_info", "GPUs that the server may use, by the server's own count", "gauge")
    for gpu, _ in measured:
        info.add({"gpu_uuid": gpu.uuid, "index": str(gpu.index), "name": gpu.name}, 1)
    families = [info]
    for name, text, kind, field in _FAMILIES:
        family = Family(name, text, kind)
        for gpu, sample in measured:
            value = getattr(sample, field)
            if value is not None:
                family.add({"gpu_uuid": gpu.uuid}, value)
        families.append(family)
    return families
