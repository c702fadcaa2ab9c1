"""Which bytes of a GPU belong to which version, by what its driver and the frameworks of the models say. Pure.

The driver names processes by their numbers on the host. In a container these are not the container's own, so that no
process can be told from another one there. A server has its GPUs for itself, though: what is used of a GPU belongs to
the versions that are on it. Of one it is all; of several it is what each one's framework has reserved, with an equal
part of the rest for each process. Where a framework does not say, nothing is attributed: an estimate is no measurement.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Version: TypeAlias = tuple[str, int]
"""A model's identifier, and the number of a version."""


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What the driver says of a GPU: bytes in use, and those of each process by its number on the host.

    `here`: those of the numbers that are processes of this container, or of a machine without containers.
    """

    used: int
    processes: Mapping[int, int] = field(default_factory=dict)
    here: frozenset[int] = frozenset()

    @property
    def names_processes(self) -> bool:
        """Whether its numbers mean the same here as on the host."""
        return bool(self.processes) and self.here == self.processes.keys()


@dataclass(frozen=True, slots=True)
class OnGpu:
    """Instances of a version on one GPU, and the bytes that their framework has reserved there, None where one of them
    does not say.
    """

    instances: int
    reserved: int | None = None


@dataclass(frozen=True, slots=True)
class VersionProcesses:
    """A version on one GPU: its processes with all that these have started, none in threads of the server."""

    family: Collection[int]
    on_gpu: OnGpu


def attributed(
    reading: GpuReading, versions: Mapping[Version, VersionProcesses], others: Mapping[Version, VersionProcesses]
) -> dict[Version, int]:
    """Return the bytes of each version on a GPU, of those for which they are known.

    `versions`: all that are configured to be on it; `others`: those that are not, and may have taken some all the same.
    """
    by_process = {
        version: sum(reading.processes.get(pid, 0) for pid in one.family)
        for version, one in {**others, **versions}.items()
    }
    if reading.names_processes or any(by_process.values()):
        return {version: size for version, size in by_process.items() if size}
    most = sum(len(one.family) for one in versions.values())
    if not versions or len(reading.processes) > most or not all(one.family for one in versions.values()):
        return {}
    return _shared(reading.used, versions)


def _shared(used: int, versions: Mapping[Version, VersionProcesses]) -> dict[Version, int]:
    """Return the parts of what is used of a GPU that these versions alone are on."""
    if len(versions) == 1:
        return dict.fromkeys(versions, used) if used else {}
    on_gpu = {version: one.on_gpu for version, one in versions.items()}
    reserved = {version: one.reserved for version, one in on_gpu.items() if one.reserved is not None}
    if len(reserved) < len(on_gpu):
        return {}
    instances = sum(one.instances for one in on_gpu.values())
    rest = max(0, used - sum(reserved.values()))
    return {version: size + rest * on_gpu[version].instances // instances for version, size in reserved.items()}
