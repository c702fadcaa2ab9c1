"""Hours of a schedule: days, a night over midnight, a time zone whose clocks change."""

from datetime import UTC, datetime

import pytest

from argosy.api.model.scaling.schedule import Schedule


def schedule(**fields: object) -> Schedule:
    return Schedule.model_validate({"name": "s", "minReplicas": 2, **fields})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "now", "holds"),
    [
        ({}, "2026-03-04T00:00", True),
        ({}, "2026-03-04T23:59:59", True),
        ({"start": "08:00", "end": "18:00"}, "2026-03-04T07:59:59", False),
        ({"start": "08:00", "end": "18:00"}, "2026-03-04T08:00", True),
        ({"start": "08:00", "end": "18:00"}, "2026-03-04T18:00", False),
        ({"start": "22:00", "end": "06:00", "days": ["Wed"]}, "2026-03-05T05:59", True),  # Wednesday's night
        ({"start": "22:00", "end": "06:00", "days": ["Wed"]}, "2026-03-04T05:59", False),  # Tuesday's
        ({"start": "22:00", "end": "06:00", "days": ["Wed"]}, "2026-03-05T06:00", False),
        ({"days": ["Sat", "Sun"]}, "2026-03-04T12:00", False),
        ({"days": ["Sat", "Sun"]}, "2026-03-07T12:00", True),
        ({"start": "08:00", "end": "24:00"}, "2026-03-04T23:59", True),
        # Berlin is an hour ahead of UTC in winter, two in summer
        ({"start": "08:00", "end": "18:00", "timeZone": "Europe/Berlin"}, "2026-01-07T07:00", True),
        ({"start": "08:00", "end": "18:00", "timeZone": "Europe/Berlin"}, "2026-07-08T17:30", False),
        ({"start": "08:00", "end": "18:00", "timeZone": "Europe/Berlin"}, "2026-07-08T06:00", True),
    ],
)
def test_it_holds_within_its_hours(fields: dict[str, object], now: str, holds: bool) -> None:
    assert schedule(**fields).holds(at(now)) is holds
