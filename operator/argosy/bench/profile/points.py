"""What a sweep measured: a point for each number of instances and size of batches, or why there is none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that a model's instances take together: on the host, and on the GPU where they take the most.

    `host`: None where that cannot be measured; `gpu`: None there, and where it runs on no GPU.
    """

    host: int | None
    gpu: int | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A closed loop with one client for each of the `instances`, each request a batch of `batch` rows.

    `throughput` in rows a second; `p50` and `p95` of a request in seconds; `requests` that were measured.
    """

    instances: int
    batch: int
    throughput: float
    p50: float
    p95: float
    requests: int
    memory: Memory


@dataclass(frozen=True, slots=True)
class Failure:
    """Where a sweep ended: the model's load with so many instances (`batch` 0), or a batch of this size."""

    instances: int
    batch: int
    message: str

    def __str__(self) -> str:
        what = f"batches of {self.batch}" if self.batch else "the load"
        count = f"{self.instances} instance{'s' if self.instances > 1 else ''}"
        return f"with {count}, {what} failed, and nothing larger was tried: {self.message}"


@dataclass(frozen=True, slots=True)
class Sweep:
    """All points in the order in which they were measured, and the failures."""

    points: Sequence[Point] = ()
    failures: Sequence[Failure] = ()

    def curve(self, instances: int) -> list[Point]:
        """Return the points with so many instances, by the size of batches."""
        return sorted((point for point in self.points if point.instances == instances), key=lambda point: point.batch)

    @property
    def instances(self) -> list[int]:
        """The numbers of instances that have a point."""
        return sorted({point.instances for point in self.points})


def point(instances: int, batch: int, latencies: Iterable[float], elapsed: float, memory: Memory) -> Point:
    """Return the point of these requests' latencies in seconds, which all together took `elapsed` seconds."""
    seconds = list(latencies)
    p50, p95 = (float(value) for value in np.percentile(seconds, (50, 95)))
    return Point(instances, batch, len(seconds) * batch / elapsed, p50, p95, len(seconds), memory)
