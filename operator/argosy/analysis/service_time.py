"""The time of an execution at equal rows, compared with the stable revision's.

A candidate with a few percent of the traffic forms smaller batches than the stable revision, so that their means cannot
be compared. The stable revision's time by rows is a curve through the mean of each size of batches, straight in
between. The candidate's executions are compared with what the curve predicts for the same rows. Below the smallest
batch of the stable revision the curve is level, and above its largest one it rises in proportion to the rows: both
overestimate the stable revision's time, so that no candidate is convicted by an estimate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Final

from argosy.analysis.errors import OUTCOMES
from argosy.analysis.sequential import MeanTest
from argosy.autoscaling.metrics.version_counts import Executions, VersionSignals
from argosy.rollout.verdict import Measurement, Outcome

SERVICE_TIME: Final = "serviceTime"
_FEWEST_READINGS: Final = 5
"""Readings of one size of batches from which the variance of its executions is estimated."""
_TEST = "sequential test of the mean logarithm of the ratio, confidence {:.1%}"


@dataclass(frozen=True, slots=True)
class _Point:
    """The mean seconds of an execution with so many rows on average, and the variance of that mean."""

    rows: float
    seconds: float
    variance: float


def service_time(
    limit: float, confidence: float, candidate: VersionSignals, stable: VersionSignals
) -> Measurement:
    """Return the measurement of the candidate's service time. `limit`: the largest ratio.

    The test decides between the square root of the limit and the limit, so that a candidate that takes as long as the
    stable revision is convicted with a probability of about the third power of 1 - confidence.
    """
    observed, reference = _points(candidate.executions), _points(stable.executions)
    samples = round(sum(size.count for size in candidate.executions.values()))
    text, test = f"<= {limit:g} times the stable revision's", _TEST.format(confidence)
    if not observed or not reference:
        missing = "the candidate" if not observed else "the stable revision"
        outcome = Outcome.INCONCLUSIVE if _is_measured(candidate) or _is_measured(stable) else None
        why = f"too few executions of {missing}" if outcome else "servers do not measure executions by their rows"
        return Measurement(SERVICE_TIME, None, text, samples, test, outcome, None, why)
    seconds = predicted = variance = predicted_variance = 0.0
    for point, count in observed:
        expected = _at([point for point, _ in reference], point.rows)
        seconds += count * point.seconds
        variance += count * count * point.variance
        predicted += count * expected.seconds
        predicted_variance += count * count * expected.variance
    ratio = seconds / predicted
    relative = variance / seconds**2 + predicted_variance / predicted**2
    decided = MeanTest(log(limit) / 2, log(limit), confidence).decide(log(ratio), relative)
    number = sum(count for _, count in observed)
    message = (
        f"{seconds / number:.4g} s an execution, {ratio:.3g} times those of the stable revision with as many rows "
        f"(standard error {sqrt(relative) * ratio:.2g})"
    )
    return Measurement(SERVICE_TIME, ratio, text, samples, test, OUTCOMES[decided], predicted / number, message)


def _is_measured(version: VersionSignals) -> bool:
    return bool(version.executions)


def _points(executions: Mapping[float, Executions]) -> list[tuple[_Point, float]]:
    """Return the mean of each size of batches that enough readings have, by rows, each with its executions."""
    points = []
    for size in executions.values():
        variance = size.variance
        if variance is not None and size.readings >= _FEWEST_READINGS:
            mean = _Point(size.rows / size.count, size.seconds / size.count, variance / size.count)
            points.append((mean, size.count))
    return sorted(points, key=lambda point: point[0].rows)


def _at(curve: Sequence[_Point], rows: float) -> _Point:
    """Return the curve's value at so many rows."""
    above = next((index for index, point in enumerate(curve) if point.rows >= rows), len(curve))
    if above == 0:
        return curve[0]
    if above == len(curve):
        last, times = curve[-1], rows / curve[-1].rows
        return _Point(rows, last.seconds * times, last.variance * times * times)
    low, high = curve[above - 1], curve[above]
    share = (rows - low.rows) / (high.rows - low.rows)
    return _Point(
        rows,
        low.seconds + (high.seconds - low.seconds) * share,
        low.variance * (1 - share) ** 2 + high.variance * share**2,
    )
