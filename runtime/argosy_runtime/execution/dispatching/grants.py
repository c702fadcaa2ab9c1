"""Which of a dispatcher's free instances may run a batch now: those that the rate limiter has granted."""

from collections.abc import Callable, Sequence

from argosy_runtime.execution.instance import Instance
from argosy_runtime.scheduling.limits.rate_limiter import LimitedInstance, RateLimiter

from .limited_instances import LimitedInstances


class Grants:
    """The rate-limited instances of one dispatcher, by their numbers. `advance` has it decide on batches again."""

    def __init__(self, limiter: RateLimiter, placed: LimitedInstances, advance: Callable[[], None]) -> None:
        self._limiter = limiter
        self._placed = placed
        self._advance = advance
        self._instances: dict[int, LimitedInstance] = {}
        self._unneeded: set[int] = set()
        self._asks = False
        self._woken = False
        placed.wake = self._wake

    def added(self, number: int, instance: Instance) -> None:
        """Note an instance that is ready."""
        assert instance.placement is not None
        self._instances[number] = self._placed.of(instance.placement)

    def gone(self, number: int) -> None:
        """Note that an instance runs nothing any more, and takes no batch."""
        limited = self._instances.pop(number, None)
        if limited is not None:
            self._limiter.ended(limited)
            self._limiter.declined(limited)

    def usable(self, free: Sequence[int], pending: int) -> list[int]:
        """Return the free instances that are granted; the others wait until they are, if requests do.

        Those that had a grant and no use for it wait again after the next event: the scheduler may need another one.
        """
        if not self._woken:
            self._unneeded.clear()
        self._woken = False
        if not pending:
            return []
        self._asks = True
        try:
            for number in free:
                if number not in self._unneeded:
                    self._limiter.wait(self._instances[number])
        finally:
            self._asks = False
        return [number for number in free if self._instances[number].granted]

    def began(self, number: int) -> None:
        """Note that a granted instance runs a batch."""
        self._limiter.began(self._instances[number])

    def ended(self, number: int) -> None:
        """Note that an instance's batch has ended."""
        limited = self._instances.get(number)
        if limited is not None:
            self._limiter.ended(limited)

    def settle(self, free: Sequence[int], pending: int) -> None:
        """Give back what is granted and not used. Without pending requests no instance waits."""
        for number in list(free):
            limited = self._instances[number]
            if limited.granted or not pending:
                self._unneeded.add(number)
                self._limiter.declined(limited)

    def _wake(self) -> None:
        """Decide on batches, because an instance was granted."""
        if not self._asks:
            self._woken = True
            self._advance()
