"""The data plane's time. Code that waits or measures takes a clock, so that tests run it in virtual time."""

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from typing import Protocol


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call."""


class Clock(Protocol):
    """A monotonic clock; times are nanoseconds."""

    def now(self) -> int:
        """Return the time."""

    def call_at(self, when: int, callback: Callable[[], None]) -> Timer:
        """Call back on the event loop at `when`, or soon after."""


class LoopClock:
    """The machine's clock and the running event loop's timers."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def now(self) -> int:
        return monotonic_ns()

    def call_at(self, when: int, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(max(0, when - monotonic_ns()) / 1e9, callback)


class Alarm:
    """A call at the earliest of the times that it was set to; then it has to be set again.

    It refers to what is called only while it is set, so that its owner is freed without a collection of circles.
    """

    __slots__ = ("_at", "_callback", "_clock", "_timer")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._callback: Callable[[], None] | None = None
        self._timer: Timer | None = None
        self._at = 0

    def set(self, when: int, callback: Callable[[], None]) -> None:
        """Call `callback` at `when`, unless an earlier call is set."""
        if self._timer is not None:
            if self._at <= when:
                return
            self._timer.cancel()
        self._at = when
        self._callback = callback
        self._timer = self._clock.call_at(when, self._ring)

    def cancel(self) -> None:
        """Do not call."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._callback = None

    def _ring(self) -> None:
        callback = self._callback
        self._timer = self._callback = None
        if callback is not None:
            callback()


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait for `seconds` on the clock."""
    over = asyncio.Event()
    timer = clock.call_at(clock.now() + round(seconds * 1e9), over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
