"""Times in statuses, Events and annotations: RFC 3339."""

from datetime import UTC, datetime


def timestamp(at: datetime) -> str:
    """Return a time in UTC, to the second. `at` must have a time zone."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime | None:
    """Return a time with a zone, or None if the text is none."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None
