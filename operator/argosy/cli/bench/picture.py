"""The result as a picture: latency against throughput, and the ratio of endpoints with the crossover."""

from collections.abc import Sequence
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

from argosy.bench.results import Comparison, Crossover, LevelResult, Results

_INCHES = (11.0, 5.0)


def draw(path: Path, results: Results) -> None:
    """Draw latency over tokens a second for each endpoint, and next to it the ratio at each concurrency."""
    # Imported here: it takes longer than everything else, and few runs draw a picture. It needs no display.
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, layout="constrained")
    compared = next((pair for pair in results.comparisons if pair.crossover == results.crossover), None)
    curves, *ratios = figure.subplots(1, 2 if compared and compared.ratios else 1, squeeze=False)[0]
    for endpoint in results.endpoints:
        _curve(curves, endpoint.name, [level for level in results.levels if level.endpoint == endpoint.name])
    if results.crossover is not None:
        _mark(curves, results.crossover, results.levels)
    curves.set(xlabel="output tokens/s", ylabel="latency of a request p50, s", yscale="log")
    curves.legend(loc="upper left", fontsize="small")
    if ratios and compared is not None:
        _ratios(ratios[0], compared)
    figure.savefig(path)


def _curve(axes: Any, name: str, levels: Sequence[LevelResult]) -> None:
    """Draw one endpoint's points, each with its load."""
    points = [level for level in levels if level.latency is not None]
    rates, medians = [level.tokens_per_second for level in points], [_median(level) for level in points]
    axes.plot(rates, medians, marker="o", label=name)
    for level, rate, median in zip(points, rates, medians, strict=True):
        load = str(level.concurrency) if level.concurrency else f"{level.rate:g}/s"
        axes.annotate(load, (rate, median), textcoords="offset points", xytext=(4, -10), fontsize="x-small")


def _median(level: LevelResult) -> float:
    return level.latency.p50 if level.latency else float("nan")


def _mark(axes: Any, crossover: Crossover, levels: Sequence[LevelResult]) -> None:
    """Mark the crossover on the curve of the endpoint that is better above it."""
    curve = [level for level in levels if level.endpoint == crossover.above and level.concurrency and level.latency]
    for lower, upper in pairwise(curve):
        first, second = lower.concurrency or 1, upper.concurrency or 1
        if first <= crossover.concurrency <= second:
            share = log(crossover.concurrency / first) / log(second / first)
            rate = lower.tokens_per_second + share * (upper.tokens_per_second - lower.tokens_per_second)
            latency = _median(lower) + share * (_median(upper) - _median(lower))
            label = f"crossover: {crossover.concurrency:.1f} at once"
            axes.plot([rate], [latency], marker="*", markersize=16, color="red", linestyle="", label=label)
            return


def _ratios(axes: Any, compared: Comparison) -> None:
    """Draw the ratio with its intervals over the concurrency, and the crossover with its own."""
    first, second = compared.endpoints
    concurrencies = [ratio.concurrency for ratio in compared.ratios]
    values = [ratio.ratio for ratio in compared.ratios]
    below = [ratio.ratio - (ratio.ratio if ratio.low is None else ratio.low) for ratio in compared.ratios]
    above = [(ratio.ratio if ratio.high is None else ratio.high) - ratio.ratio for ratio in compared.ratios]
    axes.errorbar(concurrencies, values, yerr=(below, above), marker="o", capsize=3)
    axes.axhline(1, color="grey", linestyle=":")
    crossover = compared.crossover
    if crossover is not None:
        axes.axvline(crossover.concurrency, color="red", label=f"crossover: {crossover.concurrency:.1f}")
        if crossover.low is not None and crossover.high is not None:
            axes.axvspan(crossover.low, crossover.high, color="red", alpha=0.15)
        axes.legend(loc="best", fontsize="small")
    axes.set(xscale="log", xlabel="requests in flight", ylabel=f"tokens/s, {first} ÷ {second}", title=compared.verdict)
    axes.set_xticks(concurrencies, [str(value) for value in concurrencies])
