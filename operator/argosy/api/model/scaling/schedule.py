"""Bounds of replicas by the time of day: office hours, a sale, a night without users."""

from collections.abc import Iterator
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, ClassVar
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, StringConstraints

from argosy.api.model.scaling.scale import replicas_in_order
from argosy.api.values.base import ApiModel, Fault, Int, Rule
from argosy.api.values.meta import LABEL

START = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
END = r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"
MAX_SCHEDULES = 20


class Weekday(StrEnum):
    """A day of the week, Monday first."""

    MON = "Mon"
    TUE = "Tue"
    WED = "Wed"
    THU = "Thu"
    FRI = "Fri"
    SAT = "Sat"
    SUN = "Sun"


_DAYS = tuple(Weekday)


def _check_time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{name!r} is no time zone; write it as Europe/Berlin or UTC") from None
    return name


TimeZone = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_check_time_zone)]


def _some_time(schedule: "Schedule") -> Iterator[Fault]:
    if schedule.start == schedule.end:
        yield Fault(f"is {schedule.end}, as start is; leave out both for the whole day", ("end",))


class Schedule(ApiModel):
    """Bounds at certain hours in place of minReplicas and maxReplicas."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=LABEL)] = Field(
        description="Its name in the status."
    )
    days: tuple[Weekday, ...] = Field(
        default=(),
        max_length=7,
        description="The days it begins on, such as [Mon, Tue]. Default: every day.",
    )
    start: Annotated[str, StringConstraints(max_length=5, pattern=START)] = Field(
        default="00:00", description='When it begins, as "08:00". Default: "00:00".'
    )
    end: Annotated[str, StringConstraints(max_length=5, pattern=END)] = Field(
        default="24:00", description='When it ends, as "18:30"; before start means the next day. Default: "24:00".'
    )
    time_zone: TimeZone = Field(
        default="UTC", description="The time zone of its hours, such as Europe/Berlin. Default: UTC."
    )
    min_replicas: Int = Field(ge=0, le=10000, description="The minimum number of replicas in these hours.")
    max_replicas: Int | None = Field(
        default=None,
        ge=1,
        le=10000,
        description="The maximum number of replicas in these hours. Default: spec.maxReplicas, or minReplicas if "
        "that is more.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        replicas_in_order("min_replicas", "max_replicas"),
        Rule(
            ("start", "end"),
            _some_time,
            cel="!has(self.start) || !has(self.end) || self.start != self.end",
            says="end is not start",
        ),
    )

    def holds(self, now: datetime) -> bool:
        """Return whether `now`, which has a time zone, is within its hours."""
        local = now.astimezone(ZoneInfo(self.time_zone))
        yesterday = (local - timedelta(days=1)).date()
        return self._covers(local, local) or self._covers(local, datetime.combine(yesterday, time(), local.tzinfo))

    def _covers(self, local: datetime, day: datetime) -> bool:
        """Return whether `local` is within the hours that begin on this day."""
        if self.days and _DAYS[day.weekday()] not in self.days:
            return False
        start, end = _minutes(self.start), _minutes(self.end)
        length = end - start if end > start else end - start + 24 * 60
        passed = (local.date() - day.date()).days * 24 * 60 + local.hour * 60 + local.minute - start
        return 0 <= passed < length


def _minutes(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)
