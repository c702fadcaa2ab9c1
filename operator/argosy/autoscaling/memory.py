"""The state between decisions. After a restart all of it but the last change is estimated again within a window."""

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct, structs

from argosy.autoscaling.capacity.engine import EngineUse
from argosy.autoscaling.capacity.service import Batches, Experience, Service
from argosy.autoscaling.decision import NO_EJECTION, AllocationChange, Ejection, Lowering
from argosy.autoscaling.forecast import Forecast
from argosy.autoscaling.settings import ROW_SHARE

NEVER = datetime.min.replace(tzinfo=UTC)
"""Stands for the time of an event that has not happened."""


class Measured(Struct, frozen=True):
    """Times of the measurements: `at` of the newest, and `since` when there has been no gap (None: there is a gap now).

    `is_new`: whether the newest signals were first used by the last decision. `active_at`: the last time with a
    request; `queued_at`: the last time when more requests waited than the targets allow; `unserved`: requests that the
    activator held at the last decision.
    """

    at: datetime = NEVER
    since: datetime | None = None
    is_new: bool = False
    active_at: datetime = NEVER
    queued_at: datetime = NEVER
    unserved: int = 0


class Estimates(Struct, frozen=True):
    """Estimates of service: times by batch size (`experience`), the service curve fitted to them (`service`), the use
    of an `engine` that batches by itself, and the mean `rows` of a request over `answered` requests. `versions`: the
    versions that were loaded at the first measurement. `missed`: whether a latency target was missed without a queue.
    """

    experience: Experience = Experience()
    service: Service | None = None
    engine: EngineUse | None = None
    rows: float = 1.0
    answered: float = 0.0
    versions: tuple[int, ...] = ()
    missed: bool = False

    def of(self, versions: tuple[int, ...]) -> "Estimates":
        """Return the estimates for the loaded `versions`; empty ones if none of the measured versions is loaded."""
        if self.versions and versions and not set(self.versions) & set(versions):
            return Estimates(versions=versions)
        return self if self.versions else structs.replace(self, versions=versions)

    def after(self, new: Batches, *, missed: bool) -> "Estimates":
        """Return the estimates with more batches, or an engine's steps. `missed`: a target is missed now."""
        experience, used = self.experience.after(new), None if missed > self.missed else self.service
        missed = missed or self.missed
        prompt_s = self.engine.prompt_s if self.engine is not None else 0.0
        service = experience.service(used, prompt_s, row_share=1.0 if missed else ROW_SHARE)
        return structs.replace(self, experience=experience, service=service, missed=missed)


class Recommendation(Struct, frozen=True):
    """The largest recommendation from `at` on: replicas, not rounded, and the rate in rows per second."""

    at: datetime
    replicas: float
    rate: float


class Memory(Struct, frozen=True):
    """The state of one model or ensemble between decisions.

    `at`: the time of the last decision. `expected`: the requests per second that it planned for; `holds`: the capacity
    of a replica at its best setting, in requests per second. Both are None where unknown. `change`: the newest change.
    `lowering`: the reduction after memory ran out; `lowered_at`: when that last changed.
    """

    at: datetime = NEVER
    measured: Measured = Measured()
    forecast: Forecast = Forecast()
    estimates: Estimates = Estimates()
    recommendations: tuple[Recommendation, ...] = ()
    expected: float | None = None
    holds: float | None = None
    change: AllocationChange | None = None
    lowering: Lowering | None = None
    lowered_at: datetime = NEVER
    ejection: Ejection = NO_EJECTION

    @staticmethod
    def restored(change: AllocationChange | None, lowering: Lowering | None = None) -> "Memory":
        """Return the memory after a restart, from the values in the status."""
        return Memory(change=change, lowering=lowering, lowered_at=NEVER if lowering is None else lowering.at)

    def until(self, now: datetime) -> "Memory":
        """Return the memory without times after `now`, which would block scaling until then. If the clock was set back,
        the window begins again. A status may have such times, too.
        """
        change, lowered_at = self.change, min(self.lowered_at, now)
        if change is not None and change.at > now:
            change = structs.replace(change, at=now)
        memory = structs.replace(self, change=change, lowered_at=lowered_at)
        return memory if self.at <= now else structs.replace(memory, at=now, measured=Measured(), recommendations=())

    def restarted(self) -> "Memory":
        """Return what a restart would leave of it."""
        return Memory(change=self.change, lowering=self.lowering, lowered_at=self.lowered_at)

    def since_change_s(self, now: datetime) -> float:
        """Return the seconds since the newest change; a very large number if there was none."""
        return (now - (self.change.at if self.change is not None else NEVER)).total_seconds()


class MemberMemory(Struct, frozen=True):
    """The memory of a model or an ensemble, and of each stage of an ensemble by name."""

    own: Memory = Memory()
    stages: Mapping[str, Memory] = {}

    def restarted(self) -> "MemberMemory":
        """Return what a restart would leave of it."""
        return MemberMemory(self.own.restarted(), {name: memory.restarted() for name, memory in self.stages.items()})
