"""Regimes: which variant serves new requests, by the number of requests in flight.

Variant i is the better one up to its crossover, `limits[i]` requests in flight; the last has no limit.

    up      at once when more requests are in flight than the crossover, to the regime of that number
    down    when the number has stayed at or below the low mark for the dwell time; the mark is
            `limits[i] * (1 - hysteresis)`, rounded up
    either  no sooner than the dwell time after the last change, and only to a variant that can answer

A variant is woken before it is needed: at half of the crossover on the way up, after half of the dwell
time at or below the low mark on the way down.
Without known crossovers the first variant that can answer is chosen, in their order.
"""

from collections.abc import Sequence
from enum import Enum
from math import ceil
from typing import NamedTuple

_WAKE_SHARE = 0.5
"""The share of a crossover at which the next variant is woken: concurrency may double while it wakes."""


class VariantState(Enum):
    """What a variant can do with a request now."""

    READY = "Ready"
    ASLEEP = "Asleep"
    WAKING = "Waking"
    ABSENT = "Absent"


_WITHIN_REACH = (VariantState.WAKING, VariantState.ASLEEP)


class RegimeState(NamedTuple):
    """What a regime depends on besides its rules, so that it can be kept: all of `Regimes` that changes.

    `high_at`: until when more requests than the low mark of the `current` regime were in flight. `in_flight`: the
    requests at the last look.
    """

    current: int = 0
    since: int = 0
    changes: int = 0
    high_at: int = 0
    in_flight: int = 0


class Regimes:
    """The regime of one routed model. Times are nanoseconds of any monotonic clock.

    `current`: the index of the regime's variant; `since`: when it became that; `changes`: how often it changed.
    """

    def __init__(self, count: int, limits: Sequence[int] | None, hysteresis: float, dwell: int, now: int) -> None:
        self._count = count
        self._limits = tuple(limits) if limits is not None else ()
        self._lows = [ceil(limit * (1 - hysteresis)) for limit in self._limits]
        self._dwell = dwell
        self.current = 0
        self.since = now
        self.changes = 0
        # Until when more requests than the current regime's low mark were in flight.
        self._high_at = now
        self._in_flight = 0

    @property
    def limits(self) -> tuple[int, ...]:
        """The crossovers; empty if they are unknown."""
        return self._limits

    @property
    def state(self) -> RegimeState:
        """What it depends on besides its rules."""
        return RegimeState(self.current, self.since, self.changes, self._high_at, self._in_flight)

    def resume(self, state: RegimeState) -> None:
        """Continue in a former state, as after a change of the rules.

        Rules with fewer variants continue in their last regime, those without known crossovers in the first.
        """
        if self._limits:
            self.current = min(state.current, self._count - 1)
            _, self.since, self.changes, self._high_at, self._in_flight = state

    def advance(self, in_flight: int, states: Sequence[VariantState], now: int) -> None:
        """Change the regime if it is time to. `in_flight`: requests in flight now, a new one included."""
        if not self._limits:
            return
        if self.current and max(in_flight, self._in_flight) > self._lows[self.current - 1]:
            self._high_at = now
        self._in_flight = in_flight
        if now - self.since < self._dwell and self.changes:
            return
        above = self._regime_of(in_flight)
        if above > self.current:
            self._change(range(above, self.current, -1), states, now)
        elif self.current and now - self._high_at >= self._dwell:
            self._change(range(self._regime_below(in_flight), self.current), states, now)

    def choose(self, states: Sequence[VariantState], tried: Sequence[int] = ()) -> int | None:
        """Return the variant for a request: the regime's, else the nearest that can answer, else one that can be woken.

        Variants that were `tried` are left out. None if there is no other.
        """
        by_distance = sorted(range(self._count), key=lambda index: (abs(index - self.current), -index))
        left = [index for index in by_distance if index not in tried]
        for state in (VariantState.READY, *_WITHIN_REACH):
            for index in left:
                if states[index] is state:
                    return index
        return None

    def needed(self, in_flight: int, now: int) -> set[int]:
        """Return the variants that must be awake: the regime's, and the one that may be needed soon."""
        needed = {self.current}
        if self.current < len(self._limits) and in_flight > self._limits[self.current] * _WAKE_SHARE:
            needed.add(max(self._regime_of(in_flight), self.current + 1))
        if self._limits and self.current and now - self._high_at >= self._dwell // 2:
            needed.add(self._regime_below(in_flight))
        return needed

    def next_change(self, now: int) -> int | None:
        """Return when the regime, or what it needs, may change though no request comes or ends; None if never."""
        if not self.current or not self._limits:
            return None
        down = max(self.since, self._high_at) + self._dwell
        times = (self._high_at + self._dwell // 2, down)
        return min((time for time in times if time > now), default=None)

    def _regime_of(self, in_flight: int) -> int:
        return sum(in_flight > limit for limit in self._limits)

    def _regime_below(self, in_flight: int) -> int:
        """Return the lowest regime whose low marks allow so many requests in flight."""
        return min(sum(in_flight > low for low in self._lows), self.current)

    def _change(self, candidates: Sequence[int], states: Sequence[VariantState], now: int) -> None:
        """Change to the first of these regimes whose variant can answer."""
        for regime in candidates:
            if states[regime] is VariantState.READY:
                self.current, self.since, self._high_at = regime, now, now
                self.changes += 1
                return
