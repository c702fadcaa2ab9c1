"""Metrics of the variants of routed models (`argosy_variant_*`), with the label `variant`."""

from collections.abc import Callable, Sequence

from .exposition import Family
from .series import InService, ModelSeries, VariantSeries

_Value = Callable[[VariantSeries], float | None]
_FAMILIES: tuple[tuple[str, str, str, _Value], ...] = (
    ("argosy_variant_requests_total", "Requests that were sent to a variant", "counter", lambda one: one.requests),
    (
        "argosy_variant_moved_requests_total",
        "Requests that moved to another variant, because this one was unloaded, failed or was full",
        "counter",
        lambda one: one.moved,
    ),
    (
        "argosy_variant_ready",
        "1: a variant can take requests now; 0: it is asleep, being restarted, or not loaded",
        "gauge",
        lambda one: one.state == "Ready",
    ),
    ("argosy_variant_asleep", "1: a variant is asleep", "gauge", lambda one: one.state == "Asleep"),
    ("argosy_variant_in_flight_requests", "Open requests at a variant", "gauge", lambda one: one.in_flight),
    (
        "argosy_variant_regime",
        "1: new requests go to this variant, by the number of requests in flight; 0: they do not",
        "gauge",
        lambda one: 0 if one.regime_s is None else 1,
    ),
    (
        "argosy_variant_regime_seconds",
        "Time since new requests go to this variant; absent while they do not",
        "gauge",
        lambda one: one.regime_s,
    ),
    (
        "argosy_variant_max_concurrency",
        "Crossover: the most requests in flight for which this variant is the better one; absent if it is unknown",
        "gauge",
        lambda one: one.max_concurrency,
    ),
    (
        "argosy_variant_crossover_low",
        "By traffic the crossover with the next variant is at least that; absent if too few requests can be compared",
        "gauge",
        lambda one: None if one.observed is None else one.observed.low,
    ),
    (
        "argosy_variant_crossover_high",
        "By traffic the crossover with the next variant is at most that; absent if too few requests can be compared",
        "gauge",
        lambda one: None if one.observed is None else one.observed.high,
    ),
    (
        "argosy_variant_compared_requests",
        "Requests of the last half hours by which both variants were compared, of the one with fewer",
        "gauge",
        lambda one: None if one.observed is None else one.observed.requests,
    ),
    (
        "argosy_variant_crossover_fits",
        "0: a variant is certainly slower than the other one where the declared crossover uses it; 1: it is not",
        "gauge",
        lambda one: None if one.observed is None else one.observed.fits,
    ),
)


def variant_families(models: Sequence[tuple[ModelSeries, InService]]) -> list[Family]:
    """Return the families of all routed models' variants."""
    return [_family(models, *declared) for declared in _FAMILIES]


def _family(models: Sequence[tuple[ModelSeries, InService]], name: str, text: str, kind: str, of: _Value) -> Family:
    family = Family(name, text, kind)
    for model, service in models:
        for variant in service.variants:
            value = of(variant)
            if value is not None:
                family.add({**model.labels, "variant": variant.name}, value)
    return family
