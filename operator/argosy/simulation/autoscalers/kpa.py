"""Knative's pod autoscaler (KPA), as its documentation describes it: concurrency over a stable and a panic window."""

from collections import deque
from dataclasses import dataclass
from math import ceil, floor

from argosy.autoscaling.decision import NO_EJECTION, Allocation
from argosy.simulation.autoscalers.autoscaler import Seen


@dataclass(frozen=True, slots=True)
class KpaSettings:
    """Settings with the defaults of Knative's config-autoscaler. `concurrency`: the most concurrent requests of one
    replica; `utilization`: the share of them that is the target.
    """

    concurrency: float = 100.0
    utilization: float = 0.7
    min_replicas: int = 0
    max_replicas: int = 100
    tick_s: float = 2.0
    stable_s: float = 60.0
    panic_share: float = 0.1
    panic_threshold: float = 2.0
    up_rate: float = 1000.0
    down_rate: float = 2.0
    down_delay_s: float = 0.0
    zero_grace_s: float = 30.0


class Kpa:
    """Follows the stable window; in panic the short one, only upwards, until a stable window without panic."""

    wakes = True
    ejection = NO_EJECTION

    def __init__(self, settings: KpaSettings = KpaSettings()) -> None:
        self._settings = settings
        self.interval_s = settings.tick_s
        self.reason = ""
        self._panic_at: float | None = None
        self._panic_most = 0
        self._idle_at: float | None = None
        self._desired: deque[tuple[float, int]] = deque()

    def decide(self, seen: Seen) -> Allocation:
        """Return the allocation with other replicas."""
        settings = self._settings
        stable = seen.recorder.concurrency(seen.measured, settings.stable_s)
        panic = seen.recorder.concurrency(seen.measured, settings.stable_s * settings.panic_share)
        if seen.queued_requests and not seen.ready:
            return self._sized(seen, max(1, seen.allocation.replicas))
        if stable is None or panic is None:
            return seen.allocation
        return self._sized(seen, self._to_zero(seen, stable, self._delayed(seen.now, self._of(seen, stable, panic))))

    def _of(self, seen: Seen, stable: float, panic: float) -> int:
        settings, ready = self._settings, max(1, seen.ready)
        target = settings.concurrency * settings.utilization
        least, most = floor(ready / settings.down_rate), ceil(ready * settings.up_rate)
        by_stable = min(max(ceil(stable / target - 1e-9), least), most)
        by_panic = min(max(ceil(panic / target - 1e-9), least), most)
        if by_panic / ready >= settings.panic_threshold:
            self._panic_at = seen.now
        elif self._panic_at is not None and seen.now - self._panic_at > settings.stable_s:
            self._panic_at, self._panic_most = None, 0
        if self._panic_at is None:
            self.reason = f"concurrency {stable:.1f} over {target:g} a replica"
            return by_stable
        self.reason = f"panic: concurrency {panic:.1f} over {target:g} a replica"
        self._panic_most = max(self._panic_most, by_stable, by_panic, seen.ready)
        return self._panic_most

    def _delayed(self, now: float, desired: int) -> int:
        """Return the most replicas that were desired within the scale-down delay."""
        self._desired.append((now, desired))
        while self._desired[0][0] < now - self._settings.down_delay_s:
            self._desired.popleft()
        return max(count for _, count in self._desired)

    def _to_zero(self, seen: Seen, stable: float, desired: int) -> int:
        """Return the replicas; none only after a stable window without requests and the grace period."""
        if stable > 0 or desired > 0:
            self._idle_at = None
            return max(1, desired)
        self._idle_at = seen.now if self._idle_at is None else self._idle_at
        over = seen.now - self._idle_at >= self._settings.zero_grace_s
        return 0 if over or not seen.allocation.replicas else 1

    def _sized(self, seen: Seen, desired: int) -> Allocation:
        bounded = max(self._settings.min_replicas, min(self._settings.max_replicas, desired))
        return seen.within_spare_capacity(bounded)
