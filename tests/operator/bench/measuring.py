"""Results of an imagined run: rates by endpoint and concurrency, and the latency of each request that follows."""

from collections.abc import Mapping, Sequence

from argosy.bench.answers import Answer
from argosy.bench.budgets import NO_BUDGET
from argosy.bench.comparison import Measured
from argosy.bench.figures import Trial
from argosy.bench.plan import Extent, Level, TrialKey, extent
from argosy.bench.results import Endpoint, Method, Results
from argosy.bench.summary import results

WOBBLES = (0.999, 1.001, 1.0)
OUTPUT = 5

Speeds = Mapping[str, Mapping[int, float]]
"""Answers a second by endpoint and requests in flight."""


def measured(speeds: Speeds) -> list[Measured]:
    """Return trials in which each client sends its next request when the last one is answered."""
    return [
        Measured(
            TrialKey(Level(concurrency=level), repetition, index), _trial(level, rate * wobble), OUTPUT * rate * wobble
        )
        for index, rates in enumerate(speeds.values())
        for level, rate in rates.items()
        for repetition, wobble in enumerate(WOBBLES)
    ]


def _trial(level: int, rate: float) -> Trial:
    """Return a trial at a constant rate: by Little's law each answer takes level / rate seconds."""
    sent = extent(Level(concurrency=level), 8)
    # A little less, so that no answer ends at the very begin or end of the measured time.
    latency = level / rate * (1 - 1e-6)
    answers = [_answer(number / rate, latency) for number in range(sent.total)]
    return Trial(answers, Extent(sent.lead, sent.measured, sent.tail))


def _answer(begin: float, latency: float) -> Answer:
    arrivals = [begin + latency * (index + 1) / OUTPUT for index in range(OUTPUT)]
    return Answer(begin, begin, arrivals, arrivals[-1], 10, OUTPUT)


def results_of(speeds: Speeds, models: Sequence[str] = (), **method: object) -> Results:
    """Return the document of a run with these speeds."""
    fields: dict[str, object] = {"time": "2026-05-04T12:00:00Z", "hardware": "1x H100", "prompt_tokens": 10}
    described = Method("completions", **fields | {"output_tokens": OUTPUT} | method, **_FIXED)  # type: ignore[arg-type]
    names = models or [f"chat--{name}" for name in speeds]
    endpoints = [Endpoint(name, "http://x", model) for name, model in zip(speeds, names, strict=True)]
    return results(described, endpoints, measured(speeds), NO_BUDGET)


_FIXED: Mapping[str, object] = {
    "requests": 8,
    "repetitions": len(WOBBLES),
    "seed": 0,
    "budget": {},
    "token_counts": "usage",
}
