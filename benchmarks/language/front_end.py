"""What the server adds to its engine: trials of all systems, interleaved, and the ratios between them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Any

from benchmarks.language.systems import Load, System

from argosy.bench.budgets import NO_BUDGET
from argosy.bench.figures import Latencies, Trial, percentiles, rates
from argosy.bench.plan import Level, TrialKey, extent, trials
from argosy.bench.prompts import Vocabulary


@dataclass(frozen=True)
class Measured:
    """One trial: output tokens a second, median first token in ms, µs of CPU for each token."""

    system: str
    concurrency: int
    repetition: int
    tokens_per_s: float
    first_token_ms: float
    cpu_us_per_token: float


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    concurrencies: Sequence[int] = (1, 8, 32)
    repetitions: int = 6
    requests: int = 32
    prompt_tokens: int = 128
    output_tokens: int = 64


class MismatchError(Exception):
    """A system did other work than the plan says; it cannot be compared."""


async def measure(systems: Sequence[System], words: Vocabulary, plan: Plan) -> AsyncIterator[Measured]:
    """Yield each trial as it ends."""
    levels = [Level(concurrency=number) for number in plan.concurrencies]
    for key in trials(levels, len(systems), plan.repetitions):
        # Each system has an engine of its own, so that the same prompts are new to each.
        yield await trial(systems[key.endpoint], key, Random(key.seed(0)), words, plan)


async def trial(system: System, key: TrialKey, random: Random, words: Vocabulary, plan: Plan) -> Measured:
    """Measure one trial with random prompts. Raises MismatchError where the work is not as planned."""
    requests = extent(key.level, plan.requests)
    prompts = [words.prompt(plan.prompt_tokens, random) for _ in range(requests.total)]
    before = system.front_end_cpu()
    answers = await system.answers(Load(prompts, plan.output_tokens, key.level, key.seed(0)))
    used = system.front_end_cpu() - before
    for answer in answers:
        tokens = (answer.prompt_tokens, answer.output_tokens)
        if answer.error or tokens != (plan.prompt_tokens, plan.output_tokens):
            raise MismatchError(f"{system.name}: {answer.error or tokens}")
    measured = Trial(answers, requests)
    return Measured(
        system.name,
        key.level.concurrency,
        key.repetition,
        rates(measured, NO_BUDGET).tokens,
        percentiles(Latencies.of(measured.complete).first_token).p50 * 1000,
        used * 1e6 / (plan.output_tokens * len(answers)),
    )


def ratio(measured: Sequence[Measured], first: str, second: str, concurrency: int, field: str) -> float:
    """Return the median over repetitions of first ÷ second."""
    return median(a / b for a, b in _pairs(measured, first, second, concurrency, field))


def difference(measured: Sequence[Measured], first: str, second: str, concurrency: int, field: str) -> float:
    """Return the median over repetitions of first - second."""
    return median(a - b for a, b in _pairs(measured, first, second, concurrency, field))


def _pairs(
    measured: Sequence[Measured], first: str, second: str, concurrency: int, field: str
) -> list[tuple[float, float]]:
    by_key = {(one.system, one.repetition): one for one in measured if one.concurrency == concurrency}
    repetitions = sorted({repetition for _, repetition in by_key})
    return [
        (getattr(by_key[first, repetition], field), getattr(by_key[second, repetition], field))
        for repetition in repetitions
    ]


def figures(measured: Sequence[Measured], ours: str, engine: str, peer: str) -> dict[str, Any]:
    """Return the targets' figures: at each concurrency, and the worst of them."""
    result: dict[str, Any] = {}
    levels = sorted({one.concurrency for one in measured})
    for level in levels:
        result[f"frontend_over_engine_{level}"] = ratio(measured, ours, engine, level, "tokens_per_s")
        result[f"ttft_added_ms_{level}"] = difference(measured, ours, engine, level, "first_token_ms")
        result[f"vs_vllm_serve_{level}"] = ratio(measured, ours, peer, level, "tokens_per_s")
        result[f"ttft_vs_vllm_serve_{level}"] = ratio(measured, ours, peer, level, "first_token_ms")
        for name in (ours, peer):
            values = [one.cpu_us_per_token for one in measured if (one.system, one.concurrency) == (name, level)]
            result[f"cpu_us_per_token_{name.replace(' ', '_')}_{level}"] = median(values)
    result["frontend_over_engine"] = result[f"frontend_over_engine_{levels[-1]}"]
    result["ttft_added_ms"] = result[f"ttft_added_ms_{levels[0]}"]
    result["vs_vllm_serve"] = min(result[f"vs_vllm_serve_{level}"] for level in levels)
    result["ttft_vs_vllm_serve"] = max(result[f"ttft_vs_vllm_serve_{level}"] for level in levels)
    return result
