"""Which variant of a model new requests go to, where each variant has servers of its own.

The rule is that of a server (`argosy_common.regimes`), on the requests in flight of all servers together. A variant's
crossover counts for each of its servers that answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from argosy.api.model.variants import SEPARATE_DWELL_MS, Variant
from argosy.api.status import InferenceModelStatus
from argosy.api.values.quantity import THOUSANDTHS
from argosy.api.values.times import parse_time
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.pool.language import STALE
from argosy.planning.variants import RoutedModel
from argosy_common.regimes import Regimes, RegimeState, VariantState

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US_NS, _MS_NS = 1_000, 1_000_000


@dataclass(frozen=True, slots=True)
class FleetRegime:
    """The variant that the load asks for, by its name in the spec, and the state that the next decision starts from.

    `limits`: the crossovers of all servers together at the newest measurement, at `measured_at`; None without one.
    `why`: the numbers by which it became the regime, in words.
    """

    variant: str
    state: RegimeState
    limits: tuple[int, ...] = ()
    measured_at: datetime | None = None
    why: str = ""

    @property
    def since(self) -> datetime:
        """Since when the load asks for it."""
        return _EPOCH + timedelta(microseconds=self.state.since // _US_NS)


def fleet_regimes(
    before: Mapping[str, FleetRegime], models: Iterable[tuple[RoutedModel, Signals | None]], now: datetime
) -> dict[str, FleetRegime]:
    """Return the regime of each model whose variants have servers of their own, by identity."""
    return {model.identity: _next(before.get(model.identity), model, signals, now) for model, signals in models}


def restored_regime(model: RoutedModel, status: InferenceModelStatus | None, now: datetime) -> FleetRegime | None:
    """Return the regime that a status has, after a restart; None without one. How many requests were in flight
    meanwhile is not known, so that the time on the way down begins again.
    """
    if status is None or status.regime is None or status.regime.since is None:
        return None
    since = parse_time(status.regime.since)
    names, variant = _names(model), status.regime.variant
    if since is None or variant not in names:
        return None
    return FleetRegime(variant, RegimeState(names.index(variant), _ns(min(since, now)), 1, _ns(now)))


def _next(before: FleetRegime | None, model: RoutedModel, signals: Signals | None, now: datetime) -> FleetRegime:
    """Return the regime from now on. Without new measurements it stays: silence does not say that there is no load."""
    names, routing = _names(model), model.spec.routing
    former = _former(before, model)
    state = former.state if former is not None else RegimeState(0, _ns(now), 0, _ns(now))
    measured = former.measured_at if former is not None else None
    if signals is None or not signals.variants or now - signals.at > STALE or signals.at == measured:
        return former or FleetRegime(names[0], state)
    in_flight = sum(variant.in_flight for variant in signals.variants)
    limits, states = _limits(model, signals, former), _states(model, signals)
    after = state
    if limits:
        dwell = max(routing.min_dwell, SEPARATE_DWELL_MS) * _MS_NS
        regimes = Regimes(len(states), limits, routing.hysteresis / THOUSANDTHS, dwell, _ns(now))
        regimes.resume(state)
        regimes.advance(round(in_flight), states, _ns(now))
        after = regimes.state
    if signals.unmeasured and after.current <= state.current:
        # What some servers have in flight is not known: that may be too many to go back.
        after = state._replace(high_at=_ns(now), in_flight=round(in_flight))
    why = former.why if former is not None else ""
    if after.current != state.current:
        why = _why(names, state.current, after.current, round(in_flight), limits or ())
    return FleetRegime(names[after.current], after, limits or (), signals.at, why)


def _why(names: Sequence[str], before: int, now: int, in_flight: int, limits: Sequence[int]) -> str:
    """Return the numbers by which requests changed from one variant to another."""
    edge = now if now < before else now - 1
    word = "more" if now > before else "no more"
    return f"{in_flight} in flight on all servers, {word} than the {limits[edge]} up to which {names[edge]} is better"


def _names(model: RoutedModel) -> list[str]:
    return [variant.name for variant in model.spec.variants]


def _former(before: FleetRegime | None, model: RoutedModel) -> FleetRegime | None:
    """Return the regime before, with the place that its variant has now.

    None if the variant is gone, and if it is not the first and no crossover leads to it any more.
    """
    names = _names(model)
    if before is None or before.variant not in names:
        return None
    current = names.index(before.variant)
    if current and any(variant.max_concurrency is None for variant in model.spec.variants[:-1]):
        return None
    return replace(before, state=before.state._replace(current=current))


def _limits(model: RoutedModel, signals: Signals, before: FleetRegime | None) -> tuple[int, ...] | None:
    """Return the crossovers of all servers together; None if one is not known.

    They grow from variant to variant: one whose servers take less than those of the one before it is not used. While
    some servers are not measured, they count as they did before, or all for each variant where that is not known.
    """
    ready = {variant.variant: variant.ready for variant in signals.variants}
    former = before.limits if before is not None and len(before.limits) == len(model.spec.variants) - 1 else ()
    silent = 0 if former else signals.unmeasured
    declared = [
        None
        if variant.max_concurrency is None
        else variant.max_concurrency * (_servers(model, variant, ready) + silent)
        for variant in model.spec.variants[:-1]
    ]
    crossovers = [limit for limit in declared if limit is not None]
    if len(crossovers) < len(declared):
        return None
    if signals.unmeasured and former:
        crossovers = [max(both) for both in zip(crossovers, former, strict=True)]
    return tuple(accumulate(crossovers, max))


def _servers(model: RoutedModel, variant: Variant, ready: Mapping[str, int]) -> int:
    return ready.get(model.served_name_of(variant), 0)


def _states(model: RoutedModel, signals: Signals) -> Sequence[VariantState]:
    """Return what each variant can do: requests change only to one of which a server says that it is ready."""
    ready = {variant.variant: variant.ready for variant in signals.variants}
    return [
        VariantState.READY if _servers(model, variant, ready) else VariantState.ABSENT
        for variant in model.spec.variants
    ]


def _ns(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1) * _US_NS
