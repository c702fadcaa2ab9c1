"""What has to be known of earlier decisions: all but the last change is estimated again within a window."""

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct, structs

from argosy.autoscaling.capacity.engine import EngineUse
from argosy.autoscaling.capacity.service import Batches, Experience, Service
from argosy.autoscaling.decision import NO_EJECTION, Change, Ejection, Lowering
from argosy.autoscaling.forecast import Forecast
from argosy.autoscaling.settings import ROW_SHARE

NEVER = datetime.min.replace(tzinfo=UTC)
"""The time of what did not happen."""


class Measured(Struct, frozen=True):
    """When signals were measured: the newest `at`, and `since` when without a gap (None: there is one now). `is_new`:
    whether the last decision had not seen them before. `active_at`: when there was last a request; `queued_at`: when
    more waited than may; `unserved`: requests that waited where nothing serves the member.
    """

    at: datetime = NEVER
    since: datetime | None = None
    is_new: bool = False
    active_at: datetime = NEVER
    queued_at: datetime = NEVER
    unserved: int = 0


class Estimates(Struct, frozen=True):
    """What is known of service: times by batch (`experience`), the `service` that follows from them, the use of an
    `engine` that batches by itself, and the mean `rows` of a request, of so many `answered`. `versions`: those that
    were loaded when the first of it was measured. `missed`: whether a latency target was missed without a queue.
    """

    experience: Experience = Experience()
    service: Service | None = None
    engine: EngineUse | None = None
    rows: float = 1.0
    answered: float = 0.0
    versions: tuple[int, ...] = ()
    missed: bool = False

    def of(self, versions: tuple[int, ...]) -> "Estimates":
        """Return the estimates for the versions that are loaded now: none once all of them are others."""
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
    """The most that was recommended from `at` on: replicas, not rounded, and the rate, rows a second."""

    at: datetime
    replicas: float
    rate: float


class Memory(Struct, frozen=True):
    """What is known of one model or ensemble.

    `at`: the last decision. `expected`: requests a second that it was for, `holds`: that a replica at its best setting
    holds; None where that is not known. `change`: the newest. `lowering`: what is smaller since memory ran out;
    `lowered_at`: when that last changed.
    """

    at: datetime = NEVER
    measured: Measured = Measured()
    forecast: Forecast = Forecast()
    estimates: Estimates = Estimates()
    recommendations: tuple[Recommendation, ...] = ()
    expected: float | None = None
    holds: float | None = None
    change: Change | None = None
    lowering: Lowering | None = None
    lowered_at: datetime = NEVER
    ejection: Ejection = NO_EJECTION

    @staticmethod
    def restored(change: Change | None, lowering: Lowering | None = None) -> "Memory":
        """Return the memory after a restart, from what the status says."""
        return Memory(change=change, lowering=lowering, lowered_at=NEVER if lowering is None else lowering.at)

    def until(self, now: datetime) -> "Memory":
        """Return it without times that are still to come, which would block scaling until then: where a clock was set
        back, the window begins again. A status may have such times, too.
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
        """Return the seconds since the newest change; so many since the year 1 where there was none."""
        return (now - (self.change.at if self.change is not None else NEVER)).total_seconds()


class MemberMemory(Struct, frozen=True):
    """What is known of a model or an ensemble, and of each stage of an ensemble by name."""

    own: Memory = Memory()
    stages: Mapping[str, Memory] = {}

    def restarted(self) -> "MemberMemory":
        """Return what a restart would leave of it."""
        return MemberMemory(self.own.restarted(), {name: memory.restarted() for name, memory in self.stages.items()})
