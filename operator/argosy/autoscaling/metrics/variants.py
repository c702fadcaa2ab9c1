"""The signals of a routed model's variants: sums over its servers."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from .names import PerVariant
from .signals import CrossoverSignals, VariantSignals
from .windows import ModelSeries

_HALF = 0.5


def variant_signals(parts: Iterable[tuple[ModelSeries, ModelSeries]]) -> tuple[VariantSignals, ...]:
    """Return the signals of each variant, by name. `parts`: the newest values of each server, and their increases."""
    every = list(parts)
    names = sorted({name for series, _ in every for name in _names(series)})
    return tuple(_variant(name, every) for name in names)


def _names(series: ModelSeries) -> Iterator[str]:
    prefix = f"{PerVariant.REQUESTS.value[0]}{{"
    for source in series.values:
        if source.startswith(prefix):
            yield source.removeprefix(prefix).removesuffix("}")


def _variant(name: str, parts: list[tuple[ModelSeries, ModelSeries]]) -> VariantSignals:
    ages = [age for series, _ in parts if (age := _value(series, PerVariant.REGIME_S, name)) is not None]
    return VariantSignals(
        variant=name,
        requests=sum(_value(window, PerVariant.REQUESTS, name) or 0.0 for _, window in parts),
        in_flight=_sum(parts, PerVariant.IN_FLIGHT, name),
        regime=round(_sum(parts, PerVariant.REGIME, name)),
        ready=round(_sum(parts, PerVariant.READY, name)),
        asleep=round(_sum(parts, PerVariant.ASLEEP, name)),
        regime_s=min(ages, default=None),
        crossover=_crossover([series for series, _ in parts], name),
    )


def _crossover(servers: Sequence[ModelSeries], name: str) -> CrossoverSignals | None:
    """Return the crossover that the traffic of all servers shows; None if none of them compares enough requests."""
    compared = [(series, count) for series in servers if (count := _value(series, PerVariant.COMPARED, name))]
    if not compared:
        return None
    low, high, fits = (
        _mean([(value, count) for series, count in compared if (value := _value(series, metric, name)) is not None])
        for metric in (PerVariant.CROSSOVER_LOW, PerVariant.CROSSOVER_HIGH, PerVariant.CROSSOVER_FITS)
    )
    requests = sum(count for _, count in compared)
    return CrossoverSignals(low, high, requests, None if fits is None else fits >= _HALF)


def _mean(values: Sequence[tuple[float, float]]) -> float | None:
    """Return the mean of values with their weights; None without any."""
    total = sum(weight for _, weight in values)
    return sum(value * weight for value, weight in values) / total if total else None


def _sum(parts: list[tuple[ModelSeries, ModelSeries]], metric: PerVariant, name: str) -> float:
    return sum(_value(series, metric, name) or 0.0 for series, _ in parts)


def _value(series: ModelSeries, metric: PerVariant, name: str) -> float | None:
    """Return a value of a variant; None where a server has none, or one that is no number."""
    value = series.values.get(f"{metric.value[0]}{{{name}}}")
    return value if value is not None and isfinite(value) else None
