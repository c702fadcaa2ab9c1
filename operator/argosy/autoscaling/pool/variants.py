"""What the variants of routed models do, as statuses report it: changes of the regime at once, shares now and then."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from argosy.autoscaling.metrics.signals import PoolSignals, Signals, VariantSignals
from argosy.autoscaling.pool.language import NEWER_AFTER, STALE
from argosy.planning.variants import RoutedModel

NOTICEABLE_SHARE = 0.05
"""Smallest change of a variant's share of the requests that is reported."""


@dataclass(frozen=True, slots=True)
class VariantsReport:
    """The variants of a routed model, all servers together, by the names of their models. `since`: of the regime.

    `arrivals` requests a second of the model, each `latency` seconds long on average.
    """

    measured_at: datetime
    variants: tuple[VariantSignals, ...]
    since: datetime | None = None
    arrivals: float | None = None
    latency: float | None = None
    servers: int = 1

    def shares(self) -> dict[str, float]:
        """Return each variant's share of the requests of the window; empty if there were none."""
        total = sum(variant.requests for variant in self.variants)
        return {variant.variant: variant.requests / total for variant in self.variants} if total else {}

    @property
    def regime(self) -> VariantSignals | None:
        """The variant that is the regime's on most servers."""
        chosen = [variant for variant in self.variants if variant.regime]
        return max(chosen, key=lambda variant: variant.regime, default=None)


def variants_reports(
    before: Mapping[str, VariantsReport], models: Mapping[str, Signals | None], now: datetime
) -> dict[str, VariantsReport]:
    """Return the report of each routed model, by the keys of `models`."""
    reports = {name: _next(before.get(name), signals, now) for name, signals in models.items()}
    return {name: report for name, report in reports.items() if report is not None}


def routed_signals(model: RoutedModel, signals: PoolSignals) -> Signals | None:
    """Return the signals of a routed model, with the tokens of all its variants and the engine of the busiest one."""
    own = signals.members.get(model.name)
    parts = [signals.members.get(step.model) for step in model.spec.steps]
    engines = [part for part in parts if part is not None and part.tokens is not None]
    if own is None or not engines:
        return own
    busiest = max(engines, key=lambda part: part.tokens or 0.0)
    return replace(busiest, tokens=sum(part.tokens or 0.0 for part in engines), variants=own.variants)


def _next(before: VariantsReport | None, signals: Signals | None, now: datetime) -> VariantsReport | None:
    """Return the report from now on: the former one while a new one is not worth a write, None if it is too old."""
    if signals is None or not signals.variants or now - signals.at > STALE:
        return before if before is not None and now - before.measured_at <= STALE else None
    report = _report(signals)
    if before is None or _states(before) != _states(report):
        return report
    is_due = report.measured_at - before.measured_at >= NEWER_AFTER and _differ(before.shares(), report.shares())
    return report if is_due else replace(before, measured_at=report.measured_at) if _is_aging(before, now) else before


def _is_aging(report: VariantsReport, now: datetime) -> bool:
    """Return whether a report must be renewed, unchanged, before it counts as stale."""
    return now - report.measured_at > STALE / 2


def _report(signals: Signals) -> VariantsReport:
    report = VariantsReport(
        signals.at,
        signals.variants,
        arrivals=signals.arrivals,
        latency=signals.latency.mean,
        servers=max(1, signals.servers),
    )
    regime = report.regime
    if regime is None or regime.regime_s is None:
        return report
    return replace(report, since=signals.at - timedelta(seconds=round(regime.regime_s)))


def _states(report: VariantsReport) -> object:
    return [
        (variant.variant, variant.regime, variant.ready, variant.asleep, _fits(variant)) for variant in report.variants
    ]


def _fits(variant: VariantSignals) -> bool | None:
    return variant.crossover.fits if variant.crossover is not None else None


def _differ(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    return any(
        abs(before.get(name, 0.0) - now.get(name, 0.0)) > NOTICEABLE_SHARE for name in before.keys() | now.keys()
    )
