"""The variants of a model in its status: what each does, and which one new requests go to."""

from collections.abc import Sequence

from argosy.api.model.variants import Variant
from argosy.api.scalingstatus import ScalingStatus
from argosy.api.status import VariantStatus, VersionState
from argosy.api.statusparts import RegimeStatus
from argosy.api.values.quantity import THOUSANDTHS
from argosy.api.values.times import parse_time, timestamp
from argosy.autoscaling.metrics.signals import VariantSignals
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.planning.variants import RoutedModel, VariantModel
from argosy.status.conditions import bounded
from argosy.status.findings.engines import engine_statuses, with_engines
from argosy.status.findings.loading import Loading
from argosy.status.findings.observed import observed_crossovers
from argosy.status.progress.pool_progress import PoolProgress

UNKNOWN = "Unknown"
ASLEEP, WAKING = "Asleep", "Waking"
_MOST_ENGINES = 10


def variant_status(
    variant: VariantModel,
    loading: Loading,
    progress: PoolProgress,
    report: VariantsReport | None,
    scaling: ScalingStatus | None = None,
) -> VariantStatus:
    """Return the status of one variant. `loading`: what servers report of its model. `scaling`: of its own replicas."""
    declared = variant.spec.default_version
    current = next(entry for entry in with_engines(loading.versions(), variant, progress) if entry.version == declared)
    measured = _measured(variant, report)
    share = report.shares().get(variant.served_name) if report is not None else None
    waiting = progress.engines.served.waiting.get(variant.name) if progress.engines is not None else None
    message = current.reason or (waiting.message if waiting is not None else "")
    return VariantStatus(
        name=variant.spec_name,
        model=variant.served_name,
        state=_state(str(current.state), measured),
        message=bounded(message, 500),
        max_concurrency=variant.max_concurrency,
        replicas=len(loading.servers),
        available_replicas=len(loading.loaded),
        share=None if share is None else round(share * THOUSANDTHS),
        in_flight=None if measured is None else round(measured.in_flight),
        scaling=scaling,
        engines=engine_statuses(variant, progress)[:_MOST_ENGINES],
    )


def regime_status(model: RoutedModel, report: VariantsReport | None) -> RegimeStatus:
    """Return the variant that new requests go to, and the crossovers."""
    limits = [variant.max_concurrency for variant in model.spec.variants[:-1]]
    complete = all(limit is not None for limit in limits)
    regime = report.regime if report is not None else None
    names = {model.served_name_of(variant): variant.name for variant in model.spec.variants}
    return RegimeStatus(
        variant=names.get(regime.variant, regime.variant) if regime is not None else "",
        servers=regime.regime if regime is not None else 0,
        since=timestamp(report.since) if report is not None and report.since is not None else None,
        crossover=", ".join(map(str, limits)) if complete else UNKNOWN,
        measured_at=_measured_at(model.spec.variants[:-1]),
        measured=bounded("; ".join(filter(None, map(_measurement, model.spec.variants[:-1]))), 500),
        message="" if complete else _lacks(model, limits),
        **observed_crossovers(model, report),
        advice=suited(model.spec.variants, report) if complete and report is not None else "",
    )


def _measured_at(variants: Sequence[Variant]) -> str | None:
    """Return when the oldest of the crossovers was measured; None if one was not."""
    measurements = [variant.measurement for variant in variants]
    times = [time for one in measurements if one is not None and (time := parse_time(one.time)) is not None]
    return timestamp(min(times)) if times and len(times) == len(variants) else None


def _measurement(variant: Variant) -> str:
    """Return how a variant's crossover was measured; empty if it is declared without a measurement."""
    measured = variant.measurement
    if measured is None:
        return ""
    between = "" if measured.low is None or measured.high is None else f" (95 %: {measured.low:g} to {measured.high:g})"
    return (
        f"{variant.name} up to {measured.concurrency:g} in flight{between}, {measured.prompt_tokens} tokens in and "
        f"{measured.output_tokens} out, on {measured.hardware}, {measured.time}"
    )


def suited(variants: Sequence[Variant], report: VariantsReport) -> str:
    """Return which variant suits the measured traffic, with the arithmetic of Little's law; empty without traffic.

    The crossovers of all variants but the last are set.
    """
    if not report.arrivals or not report.latency:
        return ""
    in_flight = report.arrivals * report.latency / report.servers
    limits = [(variant, variant.max_concurrency or 0) for variant in variants[:-1]]
    variant, limit = next(((one, most) for one, most in limits if in_flight <= most), (variants[-1], 0))
    bound = f"no more than {limit}" if limit else f"more than {limits[-1][1]}" if limits else "there is no other"
    where = f" / {report.servers} servers" if report.servers > 1 else ""
    return (
        f"{report.arrivals:.3g} requests a second x {report.latency:.3g} s{where} = {in_flight:.3g} in flight on "
        f"average, {bound}: {variant.name} suits them"
    )


def _lacks(model: RoutedModel, limits: list[int | None]) -> str:
    index = limits.index(None)
    first, second = model.spec.variants[index : index + 2]
    return (
        f"spec.variants[{index}].maxConcurrency: the crossover of {first.name} and {second.name} is not declared, so "
        "requests go to the first variant that can answer; measure both with argosy bench, and set the field to the "
        "crossover that it prints"
    )


def _measured(variant: VariantModel, report: VariantsReport | None) -> VariantSignals | None:
    measured = report.variants if report is not None else ()
    return next((signals for signals in measured if signals.variant == variant.served_name), None)


def _state(loaded: str, measured: VariantSignals | None) -> str:
    """Return the state of a variant's declared version; of a loaded one whether it is awake on some server."""
    if loaded != VersionState.SERVING or measured is None or measured.ready:
        return loaded
    return ASLEEP if measured.asleep else WAKING
