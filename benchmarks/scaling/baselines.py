"""The baselines' settings: their defaults, and the grid that each is tuned over on each trace."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from argosy.autoscaling.decision import Allocation
from argosy.simulation.autoscalers.autoscaler import Autoscaling
from argosy.simulation.autoscalers.hpa import Hpa, HpaMetric, HpaSettings
from argosy.simulation.autoscalers.keda import Keda, KedaSettings
from argosy.simulation.autoscalers.kpa import Kpa, KpaSettings

NAMES = ("hpa", "keda", "kpa")
_BUSY = (0.5, 0.65, 0.8)
CONCURRENCY = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0)
"""Requests at once for each replica; what ours is tuned over, too."""
_RATES = (0.6, 0.75, 0.9)
_DOWN_S = (60.0, 300.0)


@dataclass(frozen=True)
class Baseline:
    """An autoscaler with its settings in words."""

    name: str
    settings: str
    autoscaling: Autoscaling
    start: Allocation


def defaults(name: str, most: int, start: int) -> Baseline:
    """As it comes. What has no default is as in its documentation's first example, in this model's terms."""
    made: Autoscaling
    if name == "hpa":
        made, words = _hpa(HpaSettings(max_replicas=most)), "busy 80 %"
    elif name == "keda":
        hpa = HpaSettings(HpaMetric.CONCURRENCY, 8.0, external=True, max_replicas=most)
        made, words = _keda(KedaSettings(hpa)), "concurrency 8"
    else:
        made, words = _kpa(KpaSettings(max_replicas=most)), "concurrency 100, target utilization 70 %"
    return Baseline(name, words, made, Allocation(start))


def grid(name: str, most: int, start: int, throughput: float) -> Iterator[Baseline]:
    """All settings that it is tuned over; `throughput` is the most requests a second of one replica."""
    found = {"hpa": _hpas, "keda": _kedas, "kpa": _kpas}[name](most, throughput)
    for words, made in found:
        yield Baseline(name, words, made, Allocation(start))


def _targets(throughput: float) -> Iterator[tuple[HpaMetric, float]]:
    yield from ((HpaMetric.CONCURRENCY, target) for target in CONCURRENCY)
    yield from ((HpaMetric.RATE, round(share * throughput, 2)) for share in _RATES)


def _hpas(most: int, throughput: float) -> Iterator[tuple[str, Autoscaling]]:
    targets = [*((HpaMetric.BUSY, target) for target in _BUSY), *_targets(throughput)]
    for (metric, target), down in product(targets, _DOWN_S):
        settings = HpaSettings(metric, target, max_replicas=most, window_s=30.0, down_stabilization_s=down)
        yield f"{metric} {target:g}, down after {down:g} s", _hpa(settings)


def _kedas(most: int, throughput: float) -> Iterator[tuple[str, Autoscaling]]:
    for (metric, target), down in product(_targets(throughput), _DOWN_S):
        hpa = HpaSettings(metric, target, external=True, max_replicas=most, window_s=30.0, down_stabilization_s=down)
        settings = KedaSettings(hpa, polling_s=10.0, cooldown_s=down)
        yield f"{metric} {target:g}, down and to zero after {down:g} s", _keda(settings)


def _kpas(most: int, throughput: float) -> Iterator[tuple[str, Autoscaling]]:
    for target, delay in product(CONCURRENCY, (0.0, 120.0)):
        settings = KpaSettings(target, 1.0, max_replicas=most, down_delay_s=delay)
        yield f"concurrency {target:g}, scale-down delay {delay:g} s", _kpa(settings)


def _hpa(settings: HpaSettings) -> Autoscaling:
    return lambda: Hpa(settings)


def _keda(settings: KedaSettings) -> Autoscaling:
    return lambda: Keda(settings)


def _kpa(settings: KpaSettings) -> Autoscaling:
    return lambda: Kpa(settings)
