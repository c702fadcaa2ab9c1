"""Which of a dispatcher's free instances may run a batch now: those that the rate limiter has granted."""

from collections.abc import Callable, Sequence

from argosy_runtime.scheduling.limits.rate_limiter import LimitedInstance, RateLimiter


class Grants:
    """The rate-limited instances of one dispatcher, by their numbers. `advance` has it decide on batches again."""

    def __init__(self, limiter: RateLimiter, advance: Callable[[], None]) -> None:
        self._limiter = limiter
        self._advance = advance
        self._instances: dict[int, LimitedInstance] = {}
        self._asks = False

    def added(self, number: int, limited: LimitedInstance) -> None:
        """Note an instance that is ready."""
        self._instances[number] = limited

    def gone(self, number: int) -> None:
        """Note that an instance runs nothing any more, and takes no batch."""
        limited = self._instances.pop(number, None)
        if limited is not None:
            self._limiter.ended(limited)
            self._limiter.declined(limited)

    def usable(self, free: Sequence[int]) -> list[int]:
        """Return the free instances that are granted; the others wait until they are."""
        self._asks = True
        try:
            for number in free:
                self._limiter.wait(self._instances[number])
        finally:
            self._asks = False
        return [number for number in free if self._instances[number].granted]

    def began(self, number: int) -> None:
        """Note that a granted instance runs a batch."""
        self._limiter.began(self._instances[number])

    def ended(self, number: int) -> None:
        """Note that an instance's batch has ended."""
        self._limiter.ended(self._instances[number])

    def settle(self, free: Sequence[int], pending: int) -> None:
        """Give back what was granted and not used; without pending requests no instance waits."""
        for number in free:
            limited = self._instances[number]
            if limited.granted or (limited.waits and not pending):
                self._limiter.declined(limited)

    def wake(self) -> None:
        """Decide on batches, because an instance was granted."""
        if not self._asks:
            self._advance()
