"""Endpoints compared: only those that did the same work, at levels at which (nearly) all of it was done."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp

from argosy.bench.crossover import LogRatio, crossing
from argosy.bench.figures import Trial
from argosy.bench.plan import TrialKey
from argosy.bench.results import Comparison, Crossover, Ratio

MOST_ERRORS = 0.01
"""Share of failed requests above which a level is not compared: those that are left say too little."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One trial with its key and its output tokens a second."""

    key: TrialKey
    trial: Trial
    tokens_per_second: float


def refusals(names: Sequence[str], prompt_tokens: int, output_tokens: int, measured: Sequence[Measured]) -> list[str]:
    """Return why endpoints must not be compared: their answers do not have the tokens that were requested."""
    reasons = []
    for index, name in enumerate(names):
        prompts: set[int] = set()
        outputs: set[int] = set()
        for one in measured:
            if one.key.endpoint == index:
                prompts |= {answer.prompt_tokens for answer in one.trial.complete}
                outputs |= {answer.output_tokens for answer in one.trial.complete}
        if prompts - {prompt_tokens}:
            reasons.append(
                f"{name}: prompts had {_listed(prompts)} tokens instead of {prompt_tokens}: its tokenizer or its "
                "chat template differs"
            )
        if outputs - {output_tokens}:
            reasons.append(
                f"{name}: answers had {_listed(outputs)} tokens instead of {output_tokens}: it ignores ignore_eos "
                "or min_tokens, or limits max_tokens"
            )
    return reasons


def _listed(numbers: set[int]) -> str:
    ordered = sorted(numbers)
    return str(ordered[0]) if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def failing_levels(names: Sequence[str], measured: Sequence[Measured]) -> dict[tuple[int, int], str]:
    """Return why an endpoint is not compared at a concurrency, by the endpoint's index and the concurrency."""
    reasons = {}
    for one in measured:
        failed = len(one.trial.measured) - len(one.trial.complete)
        if one.key.level.concurrency and failed > MOST_ERRORS * len(one.trial.measured):
            name = names[one.key.endpoint]
            reasons[one.key.endpoint, one.key.level.concurrency] = (
                f"{name} at {one.key.level.concurrency} at once: {failed} of {len(one.trial.measured)} requests failed"
            )
    return reasons


def comparisons(names: Sequence[str], measured: Sequence[Measured], seed: int) -> list[Comparison]:
    """Return the comparison of each pair of endpoints that have done the same work."""
    excluded = failing_levels(names, measured)
    rates = {
        (one.key.endpoint, one.key.level.concurrency, one.key.repetition): one.tokens_per_second
        for one in measured
        if one.key.level.concurrency and (one.key.endpoint, one.key.level.concurrency) not in excluded
    }
    pairs = combinations(range(len(names)), 2)
    return [
        _comparison((names[first], names[second]), list(_log_ratios(rates, first, second)), seed)
        for first, second in pairs
    ]


def _log_ratios(rates: Mapping[tuple[int, int, int], float], first: int, second: int) -> Iterator[LogRatio]:
    """Yield the ratios of a pair by rising concurrency, from the repetitions that both have."""
    for concurrency in sorted({concurrency for _, concurrency, _ in rates}):
        paired = [
            (rate, other)
            for (endpoint, level, repetition), rate in rates.items()
            if endpoint == first and level == concurrency and (other := rates.get((second, level, repetition), 0.0))
        ]
        ratios = [rate / other for rate, other in paired if rate > 0]
        if ratios:
            yield LogRatio.of(concurrency, ratios)


def _comparison(names: tuple[str, str], levels: Sequence[LogRatio], seed: int) -> Comparison:
    ratios = [_ratio(names, level) for level in levels]
    crossover = _crossover(names, levels, seed)
    return Comparison(names, ratios, crossover, _verdict(names, ratios, crossover))


def _ratio(names: tuple[str, str], level: LogRatio) -> Ratio:
    interval = level.interval()
    low, high = interval or (None, None)
    better = None
    if interval is not None and not interval[0] <= 1 <= interval[1]:
        better = names[0] if level.mean > 0 else names[1]
    return Ratio(level.concurrency, exp(level.mean), low, high, better)


def _crossover(names: tuple[str, str], levels: Sequence[LogRatio], seed: int) -> Crossover | None:
    crossed = crossing(levels, seed)
    if crossed is None:
        return None
    below, above = names if crossed.first_below else reversed(names)
    between = levels[crossed.index - 1].concurrency, levels[crossed.index].concurrency
    return Crossover(crossed.concurrency, crossed.low, crossed.high, below, above, between, crossed.confidence)


def _verdict(names: tuple[str, str], ratios: Sequence[Ratio], crossover: Crossover | None) -> str:
    """Return one sentence for people."""
    if not ratios:
        return "no level in a closed loop to compare"
    if crossover is not None:
        return f"{crossover.below} up to {crossover.concurrency:.1f} at once, {crossover.above} above"
    better = {ratio.better for ratio in ratios} - {None}
    if not better:
        return "no difference that these repetitions show"
    if len(better) == 2:
        return "the better one changes, but not at one concurrency: see the levels"
    return f"{better.pop()} at every level at which they differ"


def overall(names: Sequence[str], pairs: Sequence[Comparison]) -> Crossover | None:
    """Return the crossover of the endpoint that is best at the lowest concurrency and the one best at the highest."""
    crossovers = {frozenset(pair.endpoints): pair.crossover for pair in pairs}
    lowest, highest = _best(names, pairs, 0), _best(names, pairs, -1)
    return crossovers.get(frozenset((lowest, highest)))


def _best(names: Sequence[str], pairs: Sequence[Comparison], index: int) -> str:
    """Return the endpoint that no other one beats at the first (0) or the last (-1) level."""
    beaten = {
        pair.endpoints[1 if pair.ratios[index].ratio >= 1 else 0]
        for pair in pairs
        if pair.ratios
    }  # fmt: skip
    return next((name for name in names if name not in beaten), names[0])
