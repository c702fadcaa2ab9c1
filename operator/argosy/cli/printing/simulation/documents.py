"""The outcome as plain values."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from argosy.autoscaling.decision import Allocation
from argosy.simulation.outcome import Outcome
from argosy.simulation.traces import Floats


def document(outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, Any]:
    """By who decided, then by model."""
    return {who: {each.name: _outcome(each) for each in found} for who, found in outcomes.items()}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    timeline = outcome.timeline
    return {
        "requests": outcome.requests,
        "late": outcome.late,
        "violations": round(outcome.violations, 6),
        "gpuHours": round(outcome.gpu_hours, 4),
        "latencySeconds": {f"p{percent}": _figure(outcome.percentile(percent)) for percent in (50, 90, 99)},
        "changes": [
            {
                "seconds": round(each.at, 3),
                "before": _allocation(each.before),
                "after": _allocation(each.after),
                "message": each.reason,
            }
            for each in outcome.changes
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
    found = {
        "replicas": allocation.replicas,
        "instances": allocation.instances,
        "windowSeconds": allocation.window_s,
        "maxBatchSize": allocation.max_batch,
    }
    return {name: value for name, value in found.items() if value is not None}


def _figures(values: Floats) -> list[float | None]:
    return [_figure(float(each)) for each in values]


def _figure(value: float) -> float | None:
    """JSON knows no NaN."""
    return None if isnan(value) else round(value, 6)
