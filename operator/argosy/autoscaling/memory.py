"""What has to be known of earlier decisions: all but the last change is estimated again within a window."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, structs

from argosy.autoscaling.capacity.engine import EngineUse
from argosy.autoscaling.capacity.service import Experience, Service
from argosy.autoscaling.decision import NO_EJECTION, Change, Ejection, Lowering
from argosy.autoscaling.forecast import Forecast

_NO_EXPERIENCE, _NO_FORECAST = Experience(), Forecast()


class Measured(Struct, frozen=True):
    """When signals were measured: the newest `at`, and `since` when without a gap. `is_new`: whether the last decision
    had not seen them before. `active_at`: when there was last a request; `queued_at`: when more waited than may;
    `unserved`: requests that waited where nothing serves the member.
    """

    at: datetime | None = None
    since: datetime | None = None
    is_new: bool = False
    active_at: datetime | None = None
    queued_at: datetime | None = None
    unserved: int = 0


class Estimates(Struct, frozen=True):
    """What is known of service: times by batch (`experience`), the `service` in use that follows from them, the use of
    an `engine` that batches by itself, and the mean `rows` of a request, of so many `answered`.
    """

    experience: Experience = _NO_EXPERIENCE
    service: Service | None = None
    engine: EngineUse | None = None
    rows: float = 1.0
    answered: float = 0.0


class Recommendation(Struct, frozen=True):
    """The most that was recommended from `at` on: replicas, not rounded, and the rate, rows a second."""

    at: datetime
    replicas: float
    rate: float


_UNMEASURED, _NO_ESTIMATES = Measured(), Estimates()


class Memory(Struct, frozen=True):
    """What is known of one model or ensemble.

    `at`: the last decision. `expected`: requests a second that it was for, `holds`: that a replica at its best setting
    holds; None where that is not known. `change`: the newest. `lowering`: what is smaller since memory ran out;
    `lowered_at`: when that last changed.
    """

    at: datetime | None = None
    measured: Measured = _UNMEASURED
    forecast: Forecast = _NO_FORECAST
    estimates: Estimates = _NO_ESTIMATES
    recommendations: tuple[Recommendation, ...] = ()
    expected: float | None = None
    holds: float | None = None
    change: Change | None = None
    lowering: Lowering | None = None
    lowered_at: datetime | None = None
    ejection: Ejection = NO_EJECTION

    @staticmethod
    def restored(change: Change | None, lowering: Lowering | None = None) -> "Memory":
        """Return the memory after a restart, from what the status says."""
        return Memory(change=change, lowering=lowering, lowered_at=lowering.at if lowering is not None else None)

    @property
    def most_instances(self) -> int | None:
        """The most on each device that memory allows, as was found when it ran out; None for any number."""
        return self.lowering.most_instances if self.lowering is not None else None

    def until(self, now: datetime) -> "Memory":
        """Return it without times that are still to come, where a clock was set back."""
        if self.at is None or self.at <= now:
            return self
        times = {name: _past(getattr(self.measured, name), now) for name in ("at", "since", "active_at", "queued_at")}
        return structs.replace(
            self,
            at=now,
            measured=structs.replace(self.measured, **times),
            recommendations=tuple(structs.replace(past, at=min(past.at, now)) for past in self.recommendations),
            change=None if self.change is None else structs.replace(self.change, at=min(self.change.at, now)),
            lowered_at=_past(self.lowered_at, now),
        )


class MemberMemory(Struct, frozen=True):
    """What is known of a model or an ensemble, and of each stage of an ensemble by name."""

    own: Memory = Memory()
    stages: Mapping[str, Memory] = {}


def _past(at: datetime | None, now: datetime) -> datetime | None:
    return None if at is None else min(at, now)
