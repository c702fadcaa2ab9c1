"""What each autoscaler does on a trace, and how ours compares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import mean
from typing import Any

from argosy.simulation.autoscalers.autoscaler import Autoscaling
from argosy.simulation.autoscalers.own import Own
from argosy.simulation.member import Workload
from argosy.simulation.outcome import SimulationOutcome
from argosy.simulation.simulate import simulate

from .baselines import baselines
from .cases import MOST, Case

OURS = "ours"
FAINT = 1e-4
"""The share of late requests that is too little to tell apart."""


@dataclass(frozen=True)
class Point:
    """The share of requests over the budget, and what the fleet cost: of a run, or the mean of several."""

    violations: float
    gpu_hours: float
    changes: int


def run(workload: Workload, autoscaling: Autoscaling) -> SimulationOutcome:
    """Simulate one workload alone in a fleet with GPUs enough."""
    (outcome,) = simulate([(workload, autoscaling)])
    return outcome


def points(draws: Sequence[Case]) -> dict[str, Point]:
    """Return what ours and each baseline do, by name: the means over the draws."""
    every: list[dict[str, Autoscaling]] = [{OURS: _own(case), **baselines(MOST)} for case in draws]
    return {
        name: mean_of([_point(run(case.workload, made[name])) for case, made in zip(draws, every, strict=True)])
        for name in every[0]
    }


def _own(case: Case) -> Autoscaling:
    return lambda: Own(case.policy)


def _point(outcome: SimulationOutcome) -> Point:
    return Point(outcome.violations, outcome.gpu_hours, len(outcome.changes))


def mean_of(several: Sequence[Point]) -> Point:
    """Return the mean of several runs."""
    changes = round(mean(point.changes for point in several))
    return Point(mean(point.violations for point in several), mean(point.gpu_hours for point in several), changes)


def is_dominated(ours: Point, theirs: Point) -> bool:
    """Return whether ours is worse in both: later by more than is too little to tell apart, and dearer."""
    return ours.violations > theirs.violations + FAINT and ours.gpu_hours > theirs.gpu_hours


def summary(results: Mapping[str, Mapping[str, Point]]) -> dict[str, Any]:
    """Return the keys of the benchmark: `results` is by trace and name.

    Ratios are geometric means over all pairs of ours over theirs; `FAINT` is added to both shares of late requests.
    """
    pairs = [(trace, name, row[OURS], row[name]) for trace, row in results.items() for name in row if name != OURS]
    return {
        "traces": {trace: {name: as_json(point) for name, point in row.items()} for trace, row in results.items()},
        "dominated_by": [f"{trace}: {name}" for trace, name, ours, theirs in pairs if is_dominated(ours, theirs)],
        "mean_gpu_hours_ratio": _geometric([ours.gpu_hours / theirs.gpu_hours for _, _, ours, theirs in pairs]),
        "mean_late_ratio": _geometric(
            [(ours.violations + FAINT) / (theirs.violations + FAINT) for _, _, ours, theirs in pairs]
        ),
    }


def _geometric(ratios: Sequence[float]) -> float:
    return round(exp(mean(map(log, ratios))), 4)


def as_json(point: Point) -> dict[str, Any]:
    """Return a point with figures that are worth reading."""
    return {
        "late": round(point.violations, 5),
        "gpu_hours": round(point.gpu_hours, 3),
        "changes": point.changes,
    }
