"""The crossovers that the traffic of a model shows, in its status: whether the declared ones still fit."""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

from argosy.autoscaling.metrics.signals import CrossoverSignals
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.planning.variants import RoutedModel
from argosy.status.conditions import bounded

_UNKNOWN = "unknown"


def observed_crossovers(model: RoutedModel, report: VariantsReport | None) -> dict[str, Any]:
    """Return the fields of a regime's status for observed crossovers; empty if no requests were compared.

    It is advice: the spec stays as it is.
    """
    by_name = {variant.variant: variant.crossover for variant in report.variants} if report is not None else {}
    crossovers = [by_name.get(model.served_name_of(variant)) for variant in model.spec.variants[:-1]]
    compared = [crossover for crossover in crossovers if crossover is not None]
    if not compared:
        return {}
    return {
        "observed_crossover": ", ".join(map(_text, crossovers)),
        "observed_requests": round(min(crossover.requests for crossover in compared)),
        "observed_message": bounded("; ".join(_misfits(model, crossovers)), 500),
    }


def _misfits(model: RoutedModel, crossovers: Sequence[CrossoverSignals | None]) -> Iterator[str]:
    """Yield which declared crossovers no longer fit."""
    for index, crossover in enumerate(crossovers):
        if crossover is not None and crossover.fits is False:
            first, second = model.spec.variants[index : index + 2]
            yield (
                f"spec.variants[{index}].maxConcurrency is {first.max_concurrency}, and by {round(crossover.requests)} "
                f"requests the crossover of {first.name} and {second.name} is {_text(crossover)}: measure it with "
                "argosy bench"
            )


def _text(crossover: CrossoverSignals | None) -> str:
    if crossover is None or (crossover.low is None and crossover.high is None):
        return _UNKNOWN
    if crossover.low is None:
        return f"at most {crossover.high:.3g}"
    if crossover.high is None:
        return f"at least {crossover.low:.3g}"
    return f"{sqrt(crossover.low * crossover.high):.3g}"
