"""The end of something that is idle: not at once, but when no new requests come. Pure.

Clients learn late that a server or a model leaves, and on a busy node much later than usual. So it goes on answering
until no new request has come for a period, up to a limit.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IdlePeriod:
    """The seconds without a new request that count as idle, and the longest wait.

    A period of 0 waits for nothing. Raises ValueError for times below 0.
    """

    period_s: float
    limit_s: float

    def __post_init__(self) -> None:
        if not (self.period_s >= 0.0 and self.limit_s >= 0.0):
            raise ValueError(f"a quiet period and its limit are 0 or more seconds, not {self.period_s}, {self.limit_s}")


AT_ONCE = IdlePeriod(0.0, 0.0)


def seconds(text: str) -> float:
    """Return a time from a command line, in seconds. Raises ValueError where it is not 0 or more."""
    value = float(text)
    if not 0.0 <= value < float("inf"):
        raise ValueError(text)
    return value


class IdleWait:
    """A wait until nothing new is requested.

    `requests` counts all requests so far; times are seconds of one steady clock. `silent_s`: how long no request had
    come when the wait began, where that is known.
    """

    def __init__(self, period: IdlePeriod, requests: int, now: float, silent_s: float = 0.0) -> None:
        self._period = period
        self._requests = requests
        self._last_request_at = now - silent_s
        self._end = now + period.limit_s

    def reached(self, requests: int, now: float, *, is_open: bool = False, is_expected: bool = False) -> bool:
        """Return whether the wait is over. `requests`: the number counted so far.

        `is_open`: some request is not answered yet; the period begins again with its answer. `is_expected`: a client
        may send one at any moment, on a connection that it keeps. Neither counts after the limit.
        """
        if now >= self._end or self._period.period_s == 0.0:
            return True
        if requests != self._requests or is_open:
            self._requests, self._last_request_at = requests, now
        return now - self._last_request_at >= self._period.period_s and not is_expected
