"""What an engine measures of its requests between two reports. Time is an argument: seconds of any one clock."""

from threading import Lock
from typing import Final

from argosy_runtime.histograms import DurationHistogram, TokenHistogram

from .state import EngineTimes, HistogramCounts

_NS: Final = 1e9


class EngineMeter:
    """Times and tokens since the last report. Safe from any thread.

    An engine that measures by itself adds its own seconds; for others `MeteredRequest` follows a request.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._begin()

    def add_waited(self, seconds: float) -> None:
        """Count a request that first ran so long after its arrival at the engine."""
        with self._lock:
            self._waited.add(_nanoseconds(seconds))

    def add_first_token(self, seconds: float) -> None:
        """Count a request whose first token came so long after its arrival at the engine."""
        with self._lock:
            self._first_token.add(_nanoseconds(seconds))

    def add_between_tokens(self, seconds: float, tokens: int = 1) -> None:
        """Count the time from one token of a request to its next one, for each of `tokens`."""
        duration = _nanoseconds(seconds)
        with self._lock:
            for _ in range(tokens):
                self._between_tokens.add(duration)

    def add_answered(self, seconds: float, prompt_tokens: int, generated_tokens: int, cached_tokens: int = 0) -> None:
        """Count a request whose last token came so long after its arrival at the engine, and its tokens."""
        with self._lock:
            self._answered.add(_nanoseconds(seconds))
            self._prompt_tokens.add(max(prompt_tokens, 0))
            self._generated_tokens.add(max(generated_tokens, 0))
            self._cached_tokens.add(max(cached_tokens, 0))

    def take(self) -> EngineTimes:
        """Return what was measured since the last call."""
        with self._lock:
            times = EngineTimes(
                waited=_durations(self._waited),
                first_token=_durations(self._first_token),
                between_tokens=_durations(self._between_tokens),
                answered=_durations(self._answered),
                prompt_tokens=_tokens(self._prompt_tokens),
                cached_tokens=_tokens(self._cached_tokens),
                generated_tokens=_tokens(self._generated_tokens),
            )
            self._begin()
            return times

    def _begin(self) -> None:
        self._waited = DurationHistogram()
        self._first_token = DurationHistogram()
        self._between_tokens = DurationHistogram()
        self._answered = DurationHistogram()
        self._prompt_tokens = TokenHistogram()
        self._cached_tokens = TokenHistogram()
        self._generated_tokens = TokenHistogram()


class MeteredRequest:
    """One request of an engine on its way, from its arrival at `now`. Times of choices are told apart."""

    __slots__ = ("_arrived", "_generated", "_last", "_meter", "_prompt_tokens", "_ran")

    def __init__(self, meter: EngineMeter, prompt_tokens: int, now: float) -> None:
        self._meter = meter
        self._prompt_tokens = prompt_tokens
        self._arrived = now
        self._ran = False
        self._last: dict[int, float] = {}
        self._generated = 0

    def began(self, now: float) -> None:
        """Record that the engine runs the request; only the first time counts."""
        if not self._ran:
            self._ran = True
            self._meter.add_waited(now - self._arrived)

    def generated(self, tokens: int, now: float, choice: int = 0) -> None:
        """Record new tokens of a choice. Several that come together divide the time since the last one."""
        if not tokens:
            return
        if not self._last:
            self._meter.add_first_token(now - self._arrived)
        if choice in self._last:
            self._meter.add_between_tokens((now - self._last[choice]) / tokens, tokens)
        self._last[choice] = now
        self._generated += tokens

    def answered(self, now: float, cached_tokens: int = 0) -> None:
        """Record that the last token is there."""
        self._meter.add_answered(now - self._arrived, self._prompt_tokens, self._generated, cached_tokens)


def _nanoseconds(seconds: float) -> int:
    """Return whole nanoseconds; 0 for what a clock that jumped makes negative."""
    return max(round(seconds * _NS), 0)


def _durations(histogram: DurationHistogram) -> HistogramCounts:
    return HistogramCounts(histogram.counts, histogram.ns)


def _tokens(histogram: TokenHistogram) -> HistogramCounts:
    return HistogramCounts(histogram.counts, histogram.total)
