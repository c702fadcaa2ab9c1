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
from argosy.analysis.limits import DurationLimit
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
    limit: DurationLimit,
    confidence: float,
    candidate: VersionSignals,
    stable: VersionSignals,
    earlier: VersionSignals,
) -> Measurement:
    """Return the measurement of the candidate's service time. `earlier`: the stable revision before the analysis, for
    sizes of batches that it has no longer.

    The test decides between the square root of the limit and the limit, so that a candidate that takes as long as the
    stable revision is convicted with a probability of about the third power of 1 - confidence.
    """
    observed = _points(candidate.executions)
    reference = _points({**(stable + earlier).executions, **_sufficient(stable.executions)})
    samples = round(sum(size.count for size in candidate.executions.values()))
    text, test = limit.text, _TEST.format(confidence)
    if not observed or not reference:
        outcome, why = _unmeasured(bool(observed), candidate, stable)
        return Measurement(SERVICE_TIME, None, text, samples, test, outcome, None, why)
    there, expected = _compared(observed, [point for point, _ in reference])
    ratio = there.seconds / expected.seconds
    relative = there.variance / there.seconds**2 + expected.variance / expected.seconds**2
    most = log(limit.of(expected.seconds) / expected.seconds)
    mean_test = MeanTest(most / 2, most, confidence)
    decided, progress = mean_test.decide(log(ratio), relative), mean_test.progress(log(ratio), relative)
    message = (
        f"{there.seconds:.4g} s an execution of {there.rows:.1f} rows on average, {ratio:.3g} times those of the "
        f"stable revision with as many rows (standard error {sqrt(relative) * ratio:.2g})"
    )
    outcome = OUTCOMES[decided]
    return Measurement(SERVICE_TIME, there.seconds, text, samples, test, outcome, expected.seconds, message, progress)


def _unmeasured(has_candidate: bool, candidate: VersionSignals, stable: VersionSignals) -> tuple[Outcome | None, str]:
    """Return what to say where there is nothing to compare: it is inconclusive only if that may change."""
    if has_candidate and not stable.executions:
        return None, "not compared: the stable revision executes nothing"
    if candidate.executions or stable.executions:
        return Outcome.INCONCLUSIVE, f"too few executions of the {'stable revision' if has_candidate else 'candidate'}"
    if candidate.answered and stable.answered:
        return None, "not compared: servers do not measure executions by their rows"
    return Outcome.INCONCLUSIVE, "no executions yet"


def _compared(observed: Sequence[tuple[_Point, float]], curve: Sequence[_Point]) -> tuple[_Point, _Point]:
    """Return the mean execution of the candidate, and that of the stable revision with as many rows."""
    number = sum(count for _, count in observed)
    there = _mean([(point, count / number) for point, count in observed])
    return there, _mean([(_at(curve, point.rows), count / number) for point, count in observed])


def _mean(points: Sequence[tuple[_Point, float]]) -> _Point:
    return _Point(
        sum(point.rows * share for point, share in points),
        sum(point.seconds * share for point, share in points),
        sum(point.variance * share * share for point, share in points),
    )


def _sufficient(executions: Mapping[float, Executions]) -> dict[float, Executions]:
    return {bound: size for bound, size in executions.items() if size.readings >= _FEWEST_READINGS}


def _points(executions: Mapping[float, Executions]) -> list[tuple[_Point, float]]:
    """Return the mean of each size of batches that enough readings have, by rows, each with its executions."""
    points = [
        (_Point(size.rows / size.count, size.seconds / size.count, (size.variance or 0.0) / size.count), size.count)
        for size in _sufficient(executions).values()
    ]
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
