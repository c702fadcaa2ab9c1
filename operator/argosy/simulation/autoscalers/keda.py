"""KEDA's ScaledObject, as its documentation describes it: an HPA on an external metric between one and the most
replicas, and by itself from zero to one and back.
"""

from dataclasses import dataclass, field, replace

from argosy.autoscaling.decision import NO_EJECTION, Allocation
from argosy.simulation.autoscalers.autoscaler import Seen
from argosy.simulation.autoscalers.hpa import Hpa, HpaMetric, HpaSettings


@dataclass(frozen=True, slots=True)
class KedaSettings:
    """The defaults are KEDA's. `hpa.target` is the trigger's threshold, and its metric an AverageValue. `wakes`:
    whether something in front holds the first request and tells of it at once, as its HTTP add-on does.
    """

    hpa: HpaSettings = field(
        default_factory=lambda: HpaSettings(metric=HpaMetric.CONCURRENCY, target=8.0, external=True)
    )
    min_replicas: int = 0
    polling_s: float = 30.0
    cooldown_s: float = 300.0
    activation: float = 0.0
    wakes: bool = True


class Keda:
    """Active while its trigger's value is above the activation threshold, to zero once it was not for the cooldown."""

    ejection = NO_EJECTION

    def __init__(self, settings: KedaSettings = KedaSettings()) -> None:
        self._settings = settings
        self._hpa = Hpa(replace(settings.hpa, min_replicas=max(1, settings.min_replicas)))
        self.interval_s = settings.hpa.sync_s
        self.wakes = settings.wakes
        self.reason = ""
        self._active_at: float | None = None
        self._polled_at = float("-inf")
        self._active = False

    def decide(self, seen: Seen) -> Allocation:
        """Return one replica for a request or an active trigger at zero, else what the HPA decides."""
        self._poll(seen)
        replicas = seen.allocation.replicas
        if not replicas:
            self.reason = "active" if self._active else ""
            return seen.within_spare_capacity(1) if self._active else seen.allocation
        if self._active_at is None:
            self._active_at = seen.now
        if self._settings.min_replicas == 0 and seen.now - self._active_at >= self._settings.cooldown_s:
            self.reason = f"inactive for {self._settings.cooldown_s:g} s"
            self._active_at = None
            return seen.within_spare_capacity(0)
        desired = self._hpa.decide(seen)
        self.reason = self._hpa.reason
        return desired

    def _poll(self, seen: Seen) -> None:
        if seen.now - self._polled_at < self._settings.polling_s and not seen.queued_requests:
            return
        self._polled_at = seen.now
        value = self._hpa.total(seen)
        self._active = bool(seen.queued_requests) or (value is not None and value > self._settings.activation)
        if self._active:
            self._active_at = seen.now
