"""When what leaves may go: not by the clock, but once nobody asks it any more.

Whoever sends requests learns late that something leaves, and on a busy node much later than usual. So it goes on
answering until no new request has come for a while, at most for as long as may be waited at all.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuietPeriod:
    """How many seconds without a new request are quiet, and after how many the wait ends in any case.

    A period of 0 waits for nothing. Raises ValueError for times below 0.
    """

    period_s: float
    limit_s: float

    def __post_init__(self) -> None:
        if not (self.period_s >= 0.0 and self.limit_s >= 0.0):
            raise ValueError(f"a quiet period and its limit are 0 or more seconds, not {self.period_s}, {self.limit_s}")


AT_ONCE = QuietPeriod(0.0, 0.0)


def seconds(text: str) -> float:
    """Return a time on a command line. Raises ValueError where it is none of 0 or more."""
    value = float(text)
    if not 0.0 <= value < float("inf"):
        raise ValueError(text)
    return value


class Quiet:
    """One wait for quiet. `requests` counts all that ever came; times are seconds of one steady clock.

    `silent_s`: for how long no request had come when the wait began, where that is known.
    """

    def __init__(self, period: QuietPeriod, requests: int, now: float, silent_s: float = 0.0) -> None:
        self._period = period
        self._requests = requests
        self._asked_at = now - silent_s
        self._end = now + period.limit_s

    def reached(self, requests: int, now: float) -> bool:
        """Return whether it may go, with so many requests having come by now."""
        if requests != self._requests:
            self._requests, self._asked_at = requests, now
        silent_s = now - self._asked_at
        return silent_s >= self._period.period_s or now >= self._end
