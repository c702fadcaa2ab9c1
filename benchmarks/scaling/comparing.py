"""What each does on a trace, and who is better: cheaper at no more violations, or fewer violations at no more cost."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean
from typing import Any

from argosy.autoscaling.policy import Policy
from argosy.simulation.autoscalers.autoscaler import Autoscaling
from argosy.simulation.autoscalers.own import Own
from argosy.simulation.member import Workload
from argosy.simulation.outcome import Outcome
from argosy.simulation.simulate import simulate

from .baselines import NAMES, Baseline, defaults, grid
from .cases import MOST, Case
from .clairvoyant import CLAIRVOYANT, plans
from .policies import policies

SAVED, HALF, LATE = 0.15, 0.5, 0.01
_FAINT = 1e-4
"""Of violations: too little to tell apart."""

Settings = Callable[[Policy], Iterable[tuple[str, Policy]]]


@dataclass(frozen=True)
class Point:
    """A run, or the mean of several: the share of requests over the budget, and what it cost."""

    violations: float
    gpu_hours: float
    changes: int
    settings: str


def run(workload: Workload, autoscaling: Autoscaling) -> Outcome:
    """One workload alone in a fleet that has room."""
    (outcome,) = simulate([(workload, autoscaling)])
    return outcome


def ours(draws: Sequence[Case]) -> Point:
    """The operator's decisions."""
    return mean_of([_ours(case, case.policy, "default") for case in draws])


def our_frontier(draws: Sequence[Case], settings: Settings = policies) -> list[Point]:
    """Of a grid of our settings on this trace, those than which none is better in both."""
    return _frontier([_ours(case, policy, words) for words, policy in settings(case.policy)] for case in draws)


def _ours(case: Case, policy: Policy, settings: str) -> Point:
    return _point(run(case.workload, lambda: Own(policy)), settings)


def of(baseline: Baseline, workload: Workload) -> Point:
    """A baseline's."""
    return _point(run(replace(workload, start=baseline.start), baseline.autoscaling), baseline.settings)


def by_default(draws: Sequence[Case]) -> dict[str, Point]:
    """Each baseline as it comes."""
    return {name: mean_of([of(_default(name, case), case.workload) for case in draws]) for name in NAMES}


def _default(name: str, case: Case) -> Baseline:
    return defaults(name, MOST, case.workload.start.replicas)


def frontier(draws: Sequence[Case], name: str) -> list[Point]:
    """Of a baseline's grid on this trace, those than which none is better in both."""
    return _frontier([of(each, case.workload) for each in _grid(name, case)] for case in draws)


def _grid(name: str, case: Case) -> Iterator[Baseline]:
    if name == CLAIRVOYANT:
        return plans(case)
    return grid(name, MOST, case.workload.start.replicas, case.throughput)


def _frontier(draws: Iterable[Sequence[Point]]) -> list[Point]:
    """Of each draw the same settings, one after the other."""
    return best(mean_of(points) for points in zip(*draws, strict=True))


def mean_of(points: Sequence[Point]) -> Point:
    """One setting on several draws; in the words of the first."""
    violations, gpu_hours = mean(each.violations for each in points), mean(each.gpu_hours for each in points)
    return Point(violations, gpu_hours, round(mean(each.changes for each in points)), points[0].settings)


def best(points: Iterable[Point]) -> list[Point]:
    """Those that no other is at least as good as in both, the cheapest first."""
    found: list[Point] = []
    for point in sorted(points, key=lambda point: (point.gpu_hours, point.violations)):
        if not found or point.violations < found[-1].violations:
            found.append(point)
    return found


def tuned(points: Sequence[Point]) -> Point:
    """Whose settings know the trace: the cheapest that holds the 99th percentile, else the least late."""
    good = [point for point in points if point.violations <= LATE]
    return min(good or points, key=lambda point: point.gpu_hours if good else point.violations)


def as_good(points: Sequence[Point], ours: Point) -> Point:
    """The cheapest that is late no more often than ours; where there is none, the least late."""
    good = [point for point in points if point.violations <= ours.violations]
    return min(good or points, key=lambda point: point.gpu_hours if good else point.violations)


def as_cheap(points: Sequence[Point], ours: Point) -> Point:
    """The least late that costs no more than ours; where there is none, the cheapest."""
    cheap = [point for point in points if point.gpu_hours <= ours.gpu_hours]
    return min(cheap or points, key=lambda point: point.violations if cheap else point.gpu_hours)


def saved(points: Sequence[Point], ours: Point) -> float:
    """The share of GPU-hours that ours does without, beside who is late no more often."""
    return 1 - ours.gpu_hours / as_good(points, ours).gpu_hours


def ratio(points: Sequence[Point], ours: Point) -> float | None:
    """Our violations over those of who costs no more; to both is added what is too little to tell apart. None where
    nobody costs as little.
    """
    if all(point.gpu_hours > ours.gpu_hours for point in points):
        return None
    return (ours.violations + _FAINT) / (as_cheap(points, ours).violations + _FAINT)


def meets(theirs: Point, ours: Point) -> bool:
    """The target: as many requests in time for 15 % fewer GPU-hours, or half of the violations for no more of them. As
    many are all but one in ten thousand.
    """
    cheaper = ours.violations <= theirs.violations + _FAINT and ours.gpu_hours <= (1 - SAVED) * theirs.gpu_hours
    calmer = ours.gpu_hours <= theirs.gpu_hours and ours.violations <= HALF * theirs.violations
    return cheaper or calmer


def as_json(point: Point) -> dict[str, Any]:
    """With figures that are worth reading."""
    return asdict(point) | {"violations": round(point.violations, 5), "gpu_hours": round(point.gpu_hours, 3)}


def _point(outcome: Outcome, settings: str) -> Point:
    return Point(outcome.violations, outcome.gpu_hours, len(outcome.changes), settings)
