"""Triton's metrics of CPUs and memory (`nv_cpu_*`), of the whole machine, as Linux reports them in /proc."""

import re
from dataclasses import dataclass
from pathlib import Path

from argosy_runtime.telemetry.exposition import Family

_KIB = 1024


@dataclass(frozen=True, slots=True)
class CpuTime:
    """The time of all CPUs together since the machine started, in the kernel's ticks."""

    busy: int
    total: int

    def utilization_since(self, before: "CpuTime") -> float | None:
        """Return the share (0 to 1) of the time since `before` that was spent working; None where no time has
        passed.
        """
        passed = self.total - before.total
        return min(max((self.busy - before.busy) / passed, 0.0), 1.0) if passed > 0 else None


def cpu_time(stat: str) -> CpuTime:
    """Parse the text of /proc/stat. Raises ValueError."""
    match = re.match(r"cpu +([\d ]+)", stat)
    if match is None:
        raise ValueError("/proc/stat does not begin with the time of all CPUs")
    # The last two, time of guests, are part of the first two.
    user, nice, system, idle, io_wait, *others = [int(word) for word in match[1].split()][:8]
    busy = user + nice + system + sum(others)
    return CpuTime(busy, busy + idle + io_wait)


def memory(meminfo: str) -> tuple[int, int]:
    """Return total and used bytes from the text of /proc/meminfo, cache not counted as used. Raises ValueError."""
    fields = dict(re.findall(r"^(MemTotal|MemAvailable): +(\d+) kB$", meminfo, re.MULTILINE))
    if len(fields) < 2:
        raise ValueError("/proc/meminfo does not tell MemTotal and MemAvailable")
    total, available = int(fields["MemTotal"]) * _KIB, int(fields["MemAvailable"]) * _KIB
    return total, total - available


class CpuReader:
    """Reads the metrics. Utilization is since the last reading, and is missing in the first."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._before: CpuTime | None = None

    def read(self) -> list[Family]:
        """Return the families now. Raises OSError and ValueError where /proc cannot be read."""
        now = cpu_time((self._proc / "stat").read_text())
        utilization = None if self._before is None else now.utilization_since(self._before)
        self._before = now
        return cpu_families(utilization, *memory((self._proc / "meminfo").read_text()))


def cpu_families(utilization: float | None = None, total: int | None = None, used: int | None = None) -> list[Family]:
    """Return the families with the values that are not None."""
    families = [
        Family("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", "gauge"),
        Family("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", "gauge"),
        Family("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", "gauge"),
    ]
    for family, value in zip(families, (utilization, total, used), strict=True):
        if value is not None:
            family.add({}, value)
    return families
