"""Times in statuses, Events and annotations: RFC 3339."""

from datetime import MAXYEAR, MINYEAR, UTC, datetime


def timestamp(at: datetime) -> str:
    """Return a time in UTC, to the second. `at` must have a time zone."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime | None:
    """Return the time that a text gives; None if it is not a time, or has no zone, which RFC 3339 requires.

    The first and the last year are no times: with a zone, or hours added, they are beyond what can be reckoned with.
    """
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None and MINYEAR < parsed.year < MAXYEAR else None
