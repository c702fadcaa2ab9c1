"""HorizontalPodAutoscaler (autoscaling/v2), as the Kubernetes documentation describes its algorithm."""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from argosy.autoscaling.decision import NO_EJECTION, Allocation
from argosy.simulation.autoscalers.autoscaler import Seen


class HpaMetric(StrEnum):
    """What it follows, on average over its Pods: the busy share of instances (as the device's utilization), requests in
    the Pod, or requests per second.
    """

    BUSY = "busy"
    CONCURRENCY = "concurrency"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class HpaSettings:
    """Settings with the defaults of Kubernetes: tolerance, stabilization windows, and the largest of the scale-up
    policies. `window_s`: the seconds that the metric is averaged over. `external`: one metric of all Pods with an
    AverageValue target, as in KEDA; otherwise each Pod has its own metric.
    """

    metric: HpaMetric = HpaMetric.BUSY
    target: float = 0.8
    external: bool = False
    min_replicas: int = 1
    max_replicas: int = 100
    tolerance: float = 0.1
    sync_s: float = 15.0
    window_s: float = 60.0
    up_percent: float = 100.0
    up_pods: int = 4
    up_period_s: float = 15.0
    up_stabilization_s: float = 0.0
    down_percent: float = 100.0
    down_period_s: float = 15.0
    down_stabilization_s: float = 300.0


class Hpa:
    """`desired = ceil(ready · metric / target)`, within tolerance none, stabilized, and paced by its policies."""

    wakes = False
    ejection = NO_EJECTION

    def __init__(self, settings: HpaSettings = HpaSettings()) -> None:
        self._settings = settings
        self.interval_s = settings.sync_s
        self.reason = ""
        self._recommended: deque[tuple[float, int]] = deque()
        self._changes: deque[tuple[float, int]] = deque()

    def decide(self, seen: Seen) -> Allocation:
        """Return the allocation with other replicas."""
        current = seen.allocation.replicas
        total = self.total(seen)
        if total is None or not current or not seen.ready:
            return seen.allocation
        recommended = self._recommended_by(total, current, seen.ready)
        self.reason = f"{self._settings.metric} {total:.2f}, {self._settings.target:g} for each Pod"
        desired = self._paced(seen.now, current, self._stabilized(seen.now, current, recommended))
        if desired != current:
            self._changes.append((seen.now, desired - current))
        return seen.within_spare_capacity(desired)

    def total(self, seen: Seen) -> float | None:
        """Return the metric of all Pods together."""
        recorder, window = seen.recorder, self._settings.window_s
        if self._settings.metric is HpaMetric.BUSY:
            busy = recorder.busy(seen.measured, window)
            return None if busy is None else busy * seen.ready
        if self._settings.metric is HpaMetric.CONCURRENCY:
            return recorder.concurrency(seen.measured, window)
        return recorder.rate(seen.measured, window)

    def _recommended_by(self, total: float, current: int, ready: int) -> int:
        settings = self._settings
        if settings.external:
            ratio = total / (settings.target * current)
            return current if abs(ratio - 1) <= settings.tolerance else ceil(total / settings.target - 1e-9)
        ratio = total / ready / settings.target
        if ratio > 1 and ready < current:
            return self._with_unready(ratio * ready / current, current)
        return current if abs(ratio - 1) <= settings.tolerance else ceil(ratio * ready - 1e-9)

    def _with_unready(self, ratio: float, current: int) -> int:
        """Return the desired replicas. Pods that are not ready count as idle when scaling up, but never scale
        it down.
        """
        return current if ratio <= 1 + self._settings.tolerance else ceil(ratio * current - 1e-9)

    def _stabilized(self, now: float, current: int, recommended: int) -> int:
        """Return the replicas, at most the least of the up window and at least the most of the down window."""
        settings = self._settings
        recent = max(settings.up_stabilization_s, settings.down_stabilization_s)
        self._recommended.append((now, recommended))
        while self._recommended[0][0] < now - recent:
            self._recommended.popleft()
        up = min(count for at, count in self._recommended if at >= now - settings.up_stabilization_s)
        down = max(count for at, count in self._recommended if at >= now - settings.down_stabilization_s)
        return up if up > current else min(current, down)

    def _paced(self, now: float, current: int, desired: int) -> int:
        settings = self._settings
        while self._changes and self._changes[0][0] < now - max(settings.up_period_s, settings.down_period_s):
            self._changes.popleft()
        added = sum(by for at, by in self._changes if by > 0 and at > now - settings.up_period_s)
        removed = -sum(by for at, by in self._changes if by < 0 and at > now - settings.down_period_s)
        before_up, before_down = current - added, current + removed
        most = max(before_up + settings.up_pods, ceil(before_up * (1 + settings.up_percent / 100)))
        least = int(before_down * (1 - settings.down_percent / 100))
        paced = min(desired, max(most, current)) if desired > current else max(desired, min(least, current))
        return max(settings.min_replicas, min(settings.max_replicas, paced))
