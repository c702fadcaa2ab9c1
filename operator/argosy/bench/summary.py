"""The document of a run, from its answers."""

from collections.abc import Sequence
from dataclasses import asdict

from argosy.bench import comparison
from argosy.bench.budgets import Budget
from argosy.bench.comparison import Measured
from argosy.bench.figures import Latencies, percentiles, rates
from argosy.bench.results import Endpoint, LevelResult, Method, Results, TrialResult

VERSION = 1


def results(method: Method, endpoints: Sequence[Endpoint], measured: Sequence[Measured], budget: Budget) -> Results:
    """Return the document; comparisons are left out where endpoints did different work."""
    names = [endpoint.name for endpoint in endpoints]
    work_errors = comparison.refusals(names, method.prompt_tokens, method.output_tokens, measured)
    level_errors = list(comparison.failing_levels(names, measured).values()) if len(names) > 1 else []
    pairs = [] if work_errors else comparison.comparisons(names, measured, method.seed)
    return Results(
        version=VERSION,
        method=method,
        endpoints=list(endpoints),
        trials=[_trial(names, one, budget) for one in measured],
        levels=_levels(names, measured, budget),
        comparisons=pairs,
        crossover=comparison.overall(names, pairs),
        refused=work_errors + level_errors,
    )


def limits(budget: Budget) -> dict[str, float]:
    """Return the limits that a budget sets, in seconds."""
    return {name: limit for name, limit in asdict(budget).items() if limit is not None}


def _trial(names: Sequence[str], one: Measured, budget: Budget) -> TrialResult:
    trial, level = one.trial, one.key.level
    latencies, amounts = Latencies.of(trial.complete), rates(trial, budget)
    chunks, tokens = sum(len(a.arrivals) for a in trial.complete), sum(a.output_tokens for a in trial.complete)
    return TrialResult(
        endpoint=names[one.key.endpoint],
        concurrency=level.concurrency or None,
        rate=level.rate or None,
        repetition=one.key.repetition,
        started=trial.started,
        requests=len(trial.measured),
        errors=trial.errors,
        prompt_tokens=sum(answer.prompt_tokens for answer in trial.complete),
        output_tokens=tokens,
        cached_tokens=sum(answer.cached_tokens for answer in trial.complete),
        chunks_per_token=chunks / tokens if tokens else None,
        tokens_per_second=amounts.tokens,
        requests_per_second=amounts.requests,
        goodput=amounts.goodput if budget else None,
        time_to_first_token=percentiles(latencies.first_token),
        time_per_output_token=percentiles(latencies.per_token),
        inter_token_latency=percentiles(latencies.gaps),
        latency=percentiles(latencies.total),
        send_delay=percentiles(latencies.send_delay),
        sender_cpu=trial.sender_cpu,
    )


def _levels(names: Sequence[str], measured: Sequence[Measured], budget: Budget) -> list[LevelResult]:
    """Return each endpoint's repetitions at each level together, in the order of levels."""
    together: dict[tuple[str, int], list[Measured]] = {}
    for one in measured:
        together.setdefault((str(one.key.level), one.key.endpoint), []).append(one)
    return [
        _level(names[endpoint], together[level, endpoint], budget)
        for level in dict.fromkeys(level for level, _ in together)
        for endpoint in range(len(names))
    ]


def _level(name: str, repetitions: Sequence[Measured], budget: Budget) -> LevelResult:
    level = repetitions[0].key.level
    answers = [answer for one in repetitions for answer in one.trial.complete]
    requests = sum(len(one.trial.measured) for one in repetitions)
    amounts = [rates(one.trial, budget) for one in repetitions]
    count = len(repetitions)
    latencies = Latencies.of(answers)
    within = sum(budget.is_met(answer) for answer in answers) / requests
    return LevelResult(
        endpoint=name,
        concurrency=level.concurrency or None,
        rate=level.rate or None,
        requests=requests,
        errors=sum(sum(one.trial.errors.values()) for one in repetitions),
        tokens_per_second=sum(amount.tokens for amount in amounts) / count,
        requests_per_second=sum(amount.requests for amount in amounts) / count,
        goodput=sum(amount.goodput for amount in amounts) / count if budget else None,
        within_budget=within if budget else None,
        time_to_first_token=percentiles(latencies.first_token),
        time_per_output_token=percentiles(latencies.per_token),
        inter_token_latency=percentiles(latencies.gaps),
        latency=percentiles(latencies.total),
    )
