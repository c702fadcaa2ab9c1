"""What has to be known of earlier decisions. All but the last change is learnt anew: within one stabilisation window,
and load that comes at equal intervals once it came four times.
"""

from datetime import datetime

from msgspec import Struct, structs

from argosy.autoscaling.capacity.service import Experience, Service
from argosy.autoscaling.decision import NOBODY, Ejection, Lowering, Scaled
from argosy.autoscaling.learning.arrivals import NOTHING, Arrivals
from argosy.autoscaling.learning.demand import Demand
from argosy.autoscaling.learning.engines import EngineUse
from argosy.autoscaling.learning.recurrence import Recurrence
from argosy.autoscaling.policy import Policy

__all__ = ["Asked", "KeptFor", "Memory", "Overdriven", "Peak", "Steady"]

_MEAN_S = 60.0
"""A mean is of no less: the first level that was found may be chance."""
_ABOUT, _CHANCE = 0.1, 3.0
"""By what share, and by how many standard deviations more, a load may be another and yet be the same."""
_ANOTHER_S = 30.0
"""A load that is another for less is the same: one reading in ten thousand is off by chance alone."""
_INEXPERIENCED, _UNEVEN = Experience(), Recurrence()


class Asked(Struct, frozen=True):
    """What was asked for from `at` on, at most: replicas with the margin that going down takes, not rounded, and the
    rate. `covered`: the most of it that the replicas of then were to hold.
    """

    at: datetime
    replicas: float
    rate: float
    covered: float = 0.0


class KeptFor(Struct, frozen=True):
    """The most that was asked for, without the noise in it: as `Asked`, with what a replica `holds` (rows a second) by
    then. `since`: when that, the replicas or what was asked for last changed.
    """

    since: datetime
    replicas: float
    rate: float
    holds: float


class Overdriven(Struct, frozen=True):
    """Requests a second of one replica with so many instances of a device at which a target was missed, when, and how
    many times before.
    """

    at: datetime
    rate: float
    instances: int
    times: int


class Peak(Struct, frozen=True):
    """The most requests a second of late, and when there were last about as many."""

    at: datetime
    rate: float


class Steady(Struct, frozen=True):
    """Since when the load has been about the same, and its mean since then, requests a second. `another_since`: since
    when it is another, which may yet be chance.
    """

    since: datetime
    level: float
    another_since: datetime | None = None

    def is_about(self, level: float, noise: float) -> bool:
        """Return whether this is the same load. `noise`: the standard deviation that is chance in it."""
        return abs(level - self.level) <= _ABOUT * self.level + _CHANCE * noise

    def after(self, level: float, noise: float, last: datetime, now: datetime) -> "Steady":
        """With what it has been since `last`."""
        if not self.is_about(level, noise):
            since = self.another_since or now
            lasts = (now - since).total_seconds() >= _ANOTHER_S
            return Steady(now, level) if lasts else Steady(self.since, self.level, since)
        whole_s = max((now - self.since).total_seconds(), _MEAN_S)
        share = min(1.0, max(0.0, (now - last).total_seconds()) / whole_s)
        return Steady(self.since, self.level + share * (level - self.level))


class Memory(Struct, frozen=True):
    """What is known, and what is reckoned with because of it.

    `at`: the last decision, `measured_at` the newest signals it had, `anew`: whether they were new to it, without which
    nothing goes down; `seen_from`: since when these had no gap; nothing goes down before that is a whole stabilisation
    window. `active_at`: when there was last a request, `queued_at`: when more waited than may wait with every target
    held, `drained_at`: when of that queue last fewer were `left` than ever.
    `service`: the service times in use, which follow `experience` once that tells something else; of steps, where there
    is an `engine`. `rows`: of a request.
    `variation`: of arrivals at one replica, as is reckoned with; `varies`: as was last found.
    `over_since`: since when a latency has been over its target without a pause. `overdriven`: what a
    replica does not hold, whatever the model of the queue says.
    `lowering`: what is smaller since memory ran out; `lowered_at`: when that last changed.
    `arrivals`: of the last minute. `expected`: requests a second that are reckoned with, `holds`: that a replica at its
    best setting holds, None where that is not known. `scaled`: the newest change. `kept_for`: what goes on being there
    for. `short_at`: the reading since which more replicas are wanted than there are. `catching_up`: replicas that a
    queue asked for, and when. `peak`: of late; `returns`: the seconds after which load came back that had left, the
    latest ones. `gaps`: the same of every load that left, infinite for what did not come back. `recurrence`: load that
    comes at equal intervals. `ejection`: as was last decided. `steady`: since when neither the load nor the `policy` is
    another.
    """

    at: datetime | None = None
    seen_from: datetime | None = None
    measured_at: datetime | None = None
    anew: bool = False
    active_at: datetime | None = None
    queued_at: datetime | None = None
    drained_at: datetime | None = None
    left: float = 0.0
    asked: tuple[Asked, ...] = ()
    demand: Demand | None = None
    arrivals: Arrivals = NOTHING
    experience: Experience = _INEXPERIENCED
    service: Service | None = None
    engine: EngineUse | None = None
    rows: float = 1.0
    variation: float = 1.0
    varies: float = 1.0
    over_since: datetime | None = None
    overdriven: Overdriven | None = None
    lowered_at: datetime | None = None
    lowering: Lowering | None = None
    expected: float | None = None
    holds: float | None = None
    scaled: Scaled | None = None
    kept_for: KeptFor | None = None
    short_at: datetime | None = None
    catching_up: Asked | None = None
    peak: Peak | None = None
    returns: tuple[float, ...] = ()
    gaps: tuple[float, ...] = ()
    recurrence: Recurrence = _UNEVEN
    ejection: Ejection = NOBODY
    steady: Steady | None = None
    policy: Policy | None = None

    @staticmethod
    def rebuilt(scaled: Scaled | None, lowering: Lowering | None = None) -> "Memory":
        """After a restart, from the newest change that the status tells of, and what is smaller for want of memory."""
        return Memory(scaled=scaled, lowering=lowering, lowered_at=lowering.at if lowering is not None else None)

    @property
    def most_instances(self) -> int | None:
        """The most on each device that memory allows, as was found when it ran out; None for any number."""
        return self.lowering.most_instances if self.lowering is not None else None

    def steady_s(self, now: datetime) -> float:
        """Return seconds for which the load has been about the same."""
        return 0.0 if self.steady is None else (now - self.steady.since).total_seconds()

    def since(self, now: datetime) -> "Memory":
        """With no time that is still to come, where a clock was set back: what happened then happened now."""
        if self.at is None or self.at <= now:
            return self
        return structs.replace(
            self,
            at=now,
            seen_from=_past(self.seen_from, now),
            measured_at=_past(self.measured_at, now),
            active_at=_past(self.active_at, now),
            queued_at=_past(self.queued_at, now),
            drained_at=_past(self.drained_at, now),
            asked=tuple(structs.replace(each, at=min(each.at, now)) for each in self.asked),
            over_since=_past(self.over_since, now),
            lowered_at=_past(self.lowered_at, now),
            catching_up=None,
            kept_for=None,
            short_at=None,
            peak=None,
            steady=None if self.steady is None else Steady(min(self.steady.since, now), self.steady.level),
            scaled=None if self.scaled is None else structs.replace(self.scaled, at=min(self.scaled.at, now)),
        )


def _past(at: datetime | None, now: datetime) -> datetime | None:
    return None if at is None else min(at, now)
