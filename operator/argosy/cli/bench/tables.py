"""The result at a terminal: a row for each endpoint and level, the ratios of endpoints, and the crossover."""

from collections import Counter

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from argosy.bench.results import Comparison, LevelResult, Percentiles, Results

_BUSY_SENDER = 0.8
"""Share of a CPU from which on the sender itself may delay what it measures."""
_CACHED = 0.01
_LONG_DELAY_S = 0.01


def tables(results: Results) -> RenderableType:
    """Return all of a run for people."""
    parts: list[RenderableType] = [_levels(results)]
    for comparison in results.comparisons:
        parts += [_ratios(comparison), Text(_verdict(comparison))]
    return Group(*parts)


def _levels(results: Results) -> Table:
    method = results.method
    table = Table(
        "load", "endpoint", "tokens/s", "requests/s",
        "first token p50", "p99", "per token p50", "p99", "latency p50", "p99",
        title=f"{method.prompt_tokens} tokens in, {method.output_tokens} out, {method.repetitions} repetitions",
    )  # fmt: skip
    if method.budget:
        table.add_column("goodput/s")
    table.add_column("errors")
    for level in results.levels:
        row = [_load(level), level.endpoint, f"{level.tokens_per_second:.1f}", f"{level.requests_per_second:.2f}"]
        for measured in (level.time_to_first_token, level.time_per_output_token, level.latency):
            row += _percentiles(measured)
        if method.budget:
            row.append(f"{level.goodput or 0:.2f} ({level.within_budget or 0:.0%})")
        table.add_row(*row, str(level.errors or ""))
    return table


def _load(level: LevelResult) -> str:
    return f"{level.concurrency} at once" if level.concurrency else f"{level.rate:g}/s"


def _percentiles(measured: Percentiles | None) -> list[str]:
    return ["-", "-"] if measured is None else [_seconds(measured.p50), _seconds(measured.p99)]


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.1 else f"{value * 1000:.1f} ms"


def _ratios(comparison: Comparison) -> Table:
    first, second = comparison.endpoints
    table = Table("at once", "ratio", "95 % interval", "better", title=f"tokens/s of {first} ÷ {second}")
    for ratio in comparison.ratios:
        interval = "-" if ratio.low is None or ratio.high is None else f"{ratio.low:.3f} to {ratio.high:.3f}"
        table.add_row(str(ratio.concurrency), f"{ratio.ratio:.3f}", interval, ratio.better or "-")
    return table


def _verdict(comparison: Comparison) -> str:
    crossover = comparison.crossover
    interval = ""
    if crossover is not None and crossover.low is not None and crossover.high is not None:
        interval = f" (95 %: {crossover.low:.1f} to {crossover.high:.1f})"
    return f"{' and '.join(comparison.endpoints)}: {comparison.verdict}{interval}"


def warnings(results: Results) -> list[str]:
    """Return what makes figures doubtful: failed requests, a sender at its limit, prompts from a cache."""
    errors: Counter[str] = Counter()
    for trial in results.trials:
        errors.update({f"{trial.endpoint}: {reason}": count for reason, count in trial.errors.items()})
    lines = [f"{count} requests failed: {reason}" for reason, count in errors.most_common()]
    busiest = max((trial.sender_cpu for trial in results.trials), default=0.0)
    if busiest > _BUSY_SENDER:
        lines.append(f"the sender used {busiest:.0%} of a CPU: it may have delayed what it measured")
    delay = max((trial.send_delay.p99 for trial in results.trials if trial.send_delay), default=0.0)
    if delay > _LONG_DELAY_S:
        lines.append(f"the sender was up to {_seconds(delay)} behind (p99); latencies count from the intended times")
    cached = sum(trial.cached_tokens for trial in results.trials)
    prompts = sum(trial.prompt_tokens for trial in results.trials)
    if cached > _CACHED * prompts:
        lines.append(f"a prefix cache had {cached / prompts:.0%} of the prompts' tokens, although all prompts differ")
    return lines
