"""Pauses before something that failed is tried again. Pure."""

_DOUBLINGS = 30
"""More make no difference to a pause, and would be too large for a float in the end."""


def backoff_s(failures: int, first_s: float, most_s: float) -> float:
    """Return the seconds after so many failures in a row: `first_s`, twice as long each time, `most_s` at most."""
    return min(first_s * 2.0 ** min(failures - 1, _DOUBLINGS), most_s)
