"""Statistics of engines inside of models: backends that batch by themselves, token by token, as language models do."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from argosy_runtime.backends.engines.state import EngineState, EngineTimes, HistogramCounts
from argosy_runtime.histograms import DurationHistogram, TokenHistogram

_MOST: Final = 1 << 60
"""Reports come from the process of a model. Larger numbers are wrong, and would spoil a sum for good."""


class EngineCounters:
    """Counters of one engine over all its processes, or of several engines; none of them decreases.

    Histograms are those of `EngineTimes`. `measured`: whether the engine reports them.
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
        self.answered = DurationHistogram()
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
        """Add all that another engine has reported."""
        self.prompt_tokens += other.prompt_tokens
        self.generated_tokens += other.generated_tokens
        self.cached_tokens += other.cached_tokens
        self.preemptions += other.preemptions
        if other.measured:
            self.measured = True
            for mine, theirs in zip(self._durations(), other._durations(), strict=True):
                _add_durations(mine, theirs.counts, theirs.ns)
            for some, others in zip(self._tokens(), other._tokens(), strict=True):
                _add_tokens(some, others.counts, others.total)

    def _durations(self) -> tuple[DurationHistogram, ...]:
        return self.waited, self.first_token, self.between_tokens, self.answered

    def _tokens(self) -> tuple[TokenHistogram, ...]:
        return self.request_prompt_tokens, self.request_cached_tokens, self.request_generated_tokens

    def _add_times(self, times: EngineTimes) -> None:
        self.measured = True
        durations = (times.waited, times.first_token, times.between_tokens, times.answered)
        for histogram, reported in zip(self._durations(), durations, strict=True):
            if _is_possible(reported, len(histogram.counts)):
                _add_durations(histogram, reported.counts, reported.total)
        requests = (times.prompt_tokens, times.cached_tokens, times.generated_tokens)
        for tokens, reported in zip(self._tokens(), requests, strict=True):
            if _is_possible(reported, len(tokens.counts)):
                _add_tokens(tokens, reported.counts, reported.total)


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """All engines of a model version now. `cache`: share (0 to 1) of their caches in use, None where unknown.

    `cache_tokens`: those that these caches hold together, None where unknown.

    `asleep` engines have to be woken. `states` are those of each one, by its instance.
    """

    waiting: int
    running: int
    cache: float | None
    cache_tokens: int | None
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
            cache_tokens=_sum([state.cache_tokens for state in states.values()]),
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


def _sum(tokens: Iterable[int | None]) -> int | None:
    sizes = [_possible(number) for number in tokens if number is not None and number > 0]
    return sum(sizes) if sizes else None


def _possible(tokens: int) -> int:
    return min(max(tokens, 0), _MOST)


def _is_possible(reported: HistogramCounts, buckets: int) -> bool:
    return len(reported.counts) == buckets and all(0 <= count <= _MOST for count in (*reported.counts, reported.total))


def _add_durations(histogram: DurationHistogram, counts: list[int], ns: int) -> None:
    histogram.counts = [mine + more for mine, more in zip(histogram.counts, counts, strict=True)]
    histogram.ns += ns


def _add_tokens(histogram: TokenHistogram, counts: list[int], tokens: int) -> None:
    histogram.counts = [mine + more for mine, more in zip(histogram.counts, counts, strict=True)]
    histogram.total += tokens
