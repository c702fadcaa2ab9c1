"""The liveness of a process: it writes something, or it computes. Pure."""

BUSY = 0.01
"""Less than this share of a processor is not work: threads that wait for one another wake up now and then."""


class Liveness:
    """The activity of a process; `silence_s` is how long it may do nothing. Times are in seconds."""

    def __init__(self, now: float, silence_s: float) -> None:
        self._silence_s = silence_s
        self._since, self._used = now, 0.0

    def spoke(self, now: float) -> None:
        """Take note that it wrote something."""
        self._since = now

    def computed(self, now: float, used: float) -> None:
        """Take note of the processor time `used` since it began, its children's too."""
        if used - self._used >= BUSY * self._silence_s or used < self._used:
            self._since, self._used = now, used

    def is_over(self, now: float) -> bool:
        """Return whether it has done nothing for too long."""
        return now - self._since >= self._silence_s
