"""Statistics of engines inside of models: backends that batch by themselves, token by token, as language models do."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from argosy_runtime.backends.engine_state import DurationCounts, EngineState, EngineTimes
from argosy_runtime.durations import DurationHistogram

TOKEN_BOUNDS: Final = [1 << power for power in range(19)]
"""Upper bounds of the buckets of tokens of a request, inclusive: 1 to 262144."""

_NS: Final = 1e9
_MOST_TOKENS: Final = 1 << 53
_MOST_NS: Final = 1 << 60
"""Reports come from the process of a model. Larger numbers are wrong, and would spoil a sum for good."""


class TokenHistogram:
    """How many requests had up to so many tokens, and the sum of all tokens."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(TOKEN_BOUNDS) + 1)
        self.total = 0

    def add(self, tokens: int) -> None:
        """Count one request."""
        tokens = _possible(tokens)
        self.counts[bisect_left(TOKEN_BOUNDS, tokens)] += 1
        self.total += tokens

    def merge(self, other: "TokenHistogram") -> None:
        """Add all requests of another histogram."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


class EngineCounters:
    """Counters of one engine over all its processes, or of several engines; none of them decreases.

    `waited` until the engine first ran a request, `first_token` and `duration` from a request's arrival at the engine;
    `between_tokens` from one token of a request to its next one. `measured`: whether the engine reports such times.
    """

    def __init__(self) -> None:
        self.prompt_tokens = 0
        self.generated_tokens = 0
        self.cached_tokens = 0
        self.preemptions = 0
        self.measured = False
        self.waited = DurationHistogram()
        self.first_token = DurationHistogram()
        self.between_tokens = DurationHistogram()
        self.duration = DurationHistogram()
        self.request_prompt_tokens = TokenHistogram()
        self.request_generated_tokens = TokenHistogram()
        self.request_cached_tokens = TokenHistogram()

    def add(self, before: EngineState | None, state: EngineState) -> None:
        """Add what is new in a report; totals that fell are those of a new process, and new as a whole."""
        new, old = _totals(state), _totals(before) if before is not None else (0, 0, 0, 0)
        if any(now < then for now, then in zip(new, old, strict=True)):
            old = (0, 0, 0, 0)
        prompts, generated, cached, preemptions = [now - then for now, then in zip(new, old, strict=True)]
        self.prompt_tokens += prompts
        self.generated_tokens += generated
        self.cached_tokens += cached
        self.preemptions += preemptions
        if state.times is not None:
            self._add_times(state.times)

    def merge(self, other: "EngineCounters") -> None:
        """Add all that another engine has counted."""
        self.prompt_tokens += other.prompt_tokens
        self.generated_tokens += other.generated_tokens
        self.cached_tokens += other.cached_tokens
        self.preemptions += other.preemptions
        self.measured |= other.measured
        for name in ("waited", "first_token", "between_tokens", "duration"):
            setattr(self, name, getattr(self, name).with_all(getattr(other, name)))
        self.request_prompt_tokens.merge(other.request_prompt_tokens)
        self.request_generated_tokens.merge(other.request_generated_tokens)
        self.request_cached_tokens.merge(other.request_cached_tokens)

    def _add_times(self, times: EngineTimes) -> None:
        self.measured = True
        _merge(self.waited, times.waited)
        _merge(self.first_token, times.first_token)
        _merge(self.between_tokens, times.between_tokens)
        for request in times.finished:
            if 0 <= request.seconds * _NS <= _MOST_NS:
                self.duration.add(round(request.seconds * _NS))
            self.request_prompt_tokens.add(request.prompt_tokens)
            self.request_generated_tokens.add(request.generated_tokens)
            self.request_cached_tokens.add(request.cached_tokens)


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """All engines of a model version now. `cache`: share (0 to 1) of their caches in use, None where unknown.

    `asleep` engines have to be woken. `states` are those of each one, by its instance.
    """

    waiting: int
    running: int
    cache: float | None
    asleep: int
    states: Mapping[str, EngineState]


class EngineStatistics:
    """The last reported state and the counters of each instance's engine."""

    def __init__(self) -> None:
        self._states: dict[str, EngineState] = {}
        self.counters: dict[str, EngineCounters] = {}

    @property
    def any(self) -> bool:
        """Whether there is an engine at all."""
        return bool(self._states)

    def update(self, instance: str, state: EngineState) -> None:
        """Take the state that an instance's engine reports; its totals begin again with its process."""
        self.counters.setdefault(instance, EngineCounters()).add(self._states.get(instance), state)
        self._states[instance] = state

    def total(self) -> EngineCounters:
        """Return the counters of all engines that there have been, added up."""
        return total(self.counters.values())

    def load(self, instances: Collection[str]) -> EngineLoad:
        """Return the load of these instances, which are the living ones. States of others are dropped."""
        states = {name: state for name, state in self._states.items() if name in instances}
        caches = [cache for state in states.values() if (cache := cache_share(state)) is not None]
        return EngineLoad(
            waiting=sum([max(state.waiting, 0) for state in states.values()]),
            running=sum([max(state.running, 0) for state in states.values()]),
            cache=sum(caches) / len(caches) if caches else None,
            asleep=sum([state.asleep for state in states.values()]),
            states=states,
        )


def total(counters: Iterable[EngineCounters]) -> EngineCounters:
    """Return the counters of several engines, added up."""
    together = EngineCounters()
    for engine in counters:
        together.merge(engine)
    return together


def cache_share(state: EngineState) -> float | None:
    """Return the share of an engine's cache in use; None where it is unknown, or cannot be."""
    return state.cache if state.cache is not None and 0 <= state.cache <= 1 else None


def _totals(state: EngineState) -> tuple[int, int, int, int]:
    return (
        _possible(state.prompt_tokens),
        _possible(state.generated_tokens),
        _possible(state.cached_tokens or 0),
        _possible(state.preemptions),
    )


def _possible(tokens: int) -> int:
    return min(max(tokens, 0), _MOST_TOKENS)


def _merge(histogram: DurationHistogram, durations: DurationCounts) -> None:
    """Add reported durations, unless they cannot be."""
    counts = durations.counts
    if len(counts) == len(histogram.counts) and min(counts) >= 0 and 0 <= durations.ns <= _MOST_NS:
        histogram.counts = [mine + theirs for mine, theirs in zip(histogram.counts, counts, strict=True)]
        histogram.ns += durations.ns
