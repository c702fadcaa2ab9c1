"""Requests that were not answered, and how they vary between readings."""

from dataclasses import dataclass

_FEW_READINGS = 5
"""With fewer, the variance is uncertain, and those of one reading count as one."""


@dataclass(frozen=True, slots=True)
class UnansweredRequests:
    """Requests that were canceled or timed out: `count` of all `requests`.

    `squares`: the sum over `readings` with requests of the squared count of each by its requests.
    """

    count: float = 0.0
    requests: float = 0.0
    squares: float = 0.0
    readings: int = 0

    @classmethod
    def read(cls, count: float, requests: float) -> "UnansweredRequests":
        """Return those of one reading."""
        return cls(count, requests, count * count / requests, 1) if requests else cls()

    def __add__(self, other: "UnansweredRequests") -> "UnansweredRequests":
        """Return those of both."""
        return UnansweredRequests(
            self.count + other.count,
            self.requests + other.requests,
            self.squares + other.squares,
            self.readings + other.readings,
        )

    @property
    def design_effect(self) -> float:
        """How many times the variance of their number is that of independent ones.

        It is more than 1 where they come together, as when a client with many requests ends.
        """
        count, requests = self.count, self.requests
        least = max(1.0, count / self.readings) if 0 < self.readings < _FEW_READINGS else 1.0
        if self.readings <= 1 or not 0 < count < requests:
            return least
        variance = (self.squares - count * count / requests) / (self.readings - 1)
        return max(least, variance / (count / requests * (1 - count / requests)))
