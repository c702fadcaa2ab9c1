"""The result as plain values."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from argosy.autoscaling.decision import Allocation
from argosy.simulation.outcome import SimulationOutcome
from argosy.simulation.traces import Floats


def document(outcomes: Mapping[str, Sequence[SimulationOutcome]]) -> dict[str, Any]:
    """Return the outcomes by autoscaler, then by model."""
    return {
        scaler: {outcome.name: _outcome(outcome) for outcome in of_models} for scaler, of_models in outcomes.items()
    }


def _outcome(outcome: SimulationOutcome) -> dict[str, Any]:
    timeline = outcome.timeline
    return {
        "requests": outcome.requests,
        "late": outcome.violating,
        "violations": round(outcome.violations, 6),
        "gpuHours": round(outcome.gpu_hours, 4),
        "latencySeconds": {f"p{percent}": _figure(outcome.percentile(percent)) for percent in (50, 90, 99)},
        "changes": [
            {
                "seconds": round(change.at, 3),
                "before": _allocation(change.before),
                "after": _allocation(change.after),
                "message": change.reason,
            }
            for change in outcome.changes
        ],
        "timeline": {
            "seconds": _figures(timeline.at),
            "desiredReplicas": _figures(timeline.desired),
            "readyReplicas": _figures(timeline.ready),
            "instances": _figures(timeline.instances),
            "queued": _figures(timeline.queued),
            "requestsPerSecond": _figures(timeline.arrivals),
            "p99Seconds": _figures(timeline.p99),
        },
    }


def _allocation(allocation: Allocation) -> dict[str, Any]:
    fields = {
        "replicas": allocation.replicas,
        "instances": allocation.instances,
        "windowSeconds": allocation.window_s,
        "maxBatchSize": allocation.max_batch,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _figures(values: Floats) -> list[float | None]:
    return [_figure(float(value)) for value in values]


def _figure(value: float) -> float | None:
    """Return the number rounded, or None for NaN, which JSON does not have."""
    return None if isnan(value) else round(value, 6)
