"""The measured time of a model's executions on its device, as a curve."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceCurve:
    """Seconds of one execution by its rows, alone on the device.

    `seconds[n - 1]` is for n rows, up to the largest batch. `slowdown[k - 1]` is how many times longer it takes where k
    instances execute on the device at once; more than are listed slow down in proportion to the last. `variation`:
    standard deviation of an execution's time over its mean. ValueError where it cannot be so.
    """

    seconds: tuple[float, ...]
    slowdown: tuple[float, ...] = (1.0,)
    variation: float = 0.05

    def __post_init__(self) -> None:
        if not self.seconds or any(not item > 0 for item in self.seconds):
            raise ValueError(f"seconds must be one positive number for each batch size; found {_listed(self.seconds)}")
        if not self.slowdown or any(not item >= 1 for item in self.slowdown):
            raise ValueError(f"slowdown must be numbers of at least 1; found {_listed(self.slowdown)}")
        if not 0 <= self.variation < 1:
            raise ValueError(f"variation must be from 0 to below 1; found {self.variation}")

    @property
    def max_batch(self) -> int:
        """The most rows of one execution."""
        return len(self.seconds)

    def slower(self, executing: int) -> float:
        """Return how many times longer an execution takes if this many run on the device, itself included."""
        if executing <= len(self.slowdown):
            return self.slowdown[executing - 1]
        return self.slowdown[-1] * executing / len(self.slowdown)

    def throughput(self, instances: int = 1) -> float:
        """Return rows per second of one device that never waits, with the best batch."""
        best = max(rows / seconds for rows, seconds in enumerate(self.seconds, 1))
        return best * instances / self.slower(instances)


def interpolated(measured: Sequence[tuple[int, float]], slowdown: tuple[float, ...], variation: float) -> ServiceCurve:
    """Return a curve through measured (rows, seconds), straight between them and level before the first."""
    points = sorted(measured)
    if not points or points[0][0] < 1:
        raise ValueError(f"a curve needs batches of at least one row; found {_listed(rows for rows, _ in points)}")
    return ServiceCurve(tuple(_between(points, rows) for rows in range(1, points[-1][0] + 1)), slowdown, variation)


def _listed(numbers: Iterable[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers) or "none"


def _between(points: Sequence[tuple[int, float]], rows: int) -> float:
    above = next(index for index, (measured, _) in enumerate(points) if measured >= rows)
    if above == 0:
        return points[0][1]
    (low, low_s), (high, high_s) = points[above - 1], points[above]
    return low_s + (high_s - low_s) * (rows - low) / (high - low)
