"""Latencies of the last minute as quantiles: Triton's summaries (`--metrics-config summary_latencies=true`).

A latency falls into a bucket whose bounds differ by 1 %, so that its memory does not depend on the traffic and a
quantile is exact but for 1 % of its value. The minute is five slices, of which the oldest is dropped every 12 s.
"""

from collections import deque
from math import exp, log
from typing import Final

_SLICES: Final = 5
_SLICE_NS: Final = 12_000_000_000
_PER_E: Final = 100.0
"""Buckets for each factor of e."""

_STAGES: Final = ("request", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss")


class LatencySummary:
    """Latencies of one kind, in nanoseconds: how many there were, their sum, and the last minute's by buckets."""

    __slots__ = ("_slices", "count", "ns")

    def __init__(self) -> None:
        self.count = 0
        self.ns = 0
        self._slices: deque[dict[int, int]] = deque([{}], _SLICES)

    def add(self, ns: int, count: int = 1) -> None:
        """Count one latency, or `count` equal ones."""
        self.count += count
        self.ns += ns * count
        bucket = round(log(ns) * _PER_E) if ns > 0 else -1
        present = self._slices[-1]
        present[bucket] = present.get(bucket, 0) + count

    def age(self, slices: int) -> None:
        """Begin further slices; the oldest ones are dropped."""
        for _ in range(min(slices, _SLICES)):
            self._slices.append({})

    def quantile(self, share: float) -> float:
        """Return the latency that this share (0 to 1) of the last minute's is not above; NaN without any."""
        together: dict[int, int] = {}
        for present in self._slices:
            for bucket, count in present.items():
                together[bucket] = together.get(bucket, 0) + count
        left = share * sum(together.values())
        latency = float("nan")
        for bucket, count in sorted(together.items()):
            latency = exp(bucket / _PER_E) if bucket >= 0 else 0.0
            left -= count
            if left <= 0:
                break
        return latency


class LatencySummaries:
    """The summaries of one model version. `advance` before latencies are added."""

    __slots__ = ("_slice_end", "stages")

    def __init__(self) -> None:
        self.stages = {name: LatencySummary() for name in _STAGES}
        self._slice_end = 0

    def advance(self, now: int) -> None:
        """Set the time."""
        if now < self._slice_end:
            return
        passed = 1 + (now - self._slice_end) // _SLICE_NS
        for summary in self.stages.values():
            summary.age(passed)
        self._slice_end += passed * _SLICE_NS

    def add(self, stage: str, ns: int, count: int = 1) -> None:
        """Add a latency of a stage, or `count` equal ones."""
        self.stages[stage].add(ns, count)
