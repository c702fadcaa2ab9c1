"""The time of an execution at equal rows: compared in spite of other batches, with stated error rates."""

import numpy as np
import pytest
from tests.operator.analysis.versions import executions, total

from argosy.analysis.limits import DurationLimit
from argosy.analysis.service_time import service_time
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.verdict import Measurement, Outcome

LIMIT, CONFIDENCE = 1.5, 0.95
NO_TOLERANCE = DurationLimit(LIMIT)
NOTHING = VersionSignals()


def read(
    seed: int, largest: int, times: float = 1.0, readings: int = 10, per_reading: int = 8, variation: float = 0.1
) -> VersionSignals:
    """Return readings of a version whose executions take 5 ms and 1 ms a row, `times` as long, with up to so many
    rows.
    """
    random = np.random.default_rng(seed)
    parts = []
    for _ in range(readings):
        rows = random.integers(max(1, largest // 4), largest + 1, per_reading)
        seconds = (0.005 + 0.001 * rows) * times * random.normal(1.0, variation, per_reading).clip(0.2)
        parts.append(VersionSignals(1.0, per_reading, executions=executions(rows, seconds)))
    return total(*parts)


def measure(
    candidate: VersionSignals,
    stable: VersionSignals,
    earlier: VersionSignals = NOTHING,
    limit: DurationLimit = NO_TOLERANCE,
) -> Measurement:
    return service_time(limit, CONFIDENCE, candidate, stable, earlier)


def _ratio(measurement: Measurement) -> float:
    """Return the ratio of the seconds that the candidate takes to those of the stable revision."""
    assert measurement.value is not None
    assert measurement.stable is not None
    return measurement.value / measurement.stable


@pytest.mark.parametrize(("tolerance_s", "outcome"), [(0.0, Outcome.FAILED), (0.04, Outcome.SUCCESSFUL)])
def test_what_takes_longer_by_less_than_the_tolerance_passes(tolerance_s: float, outcome: Outcome) -> None:
    twice = measure(read(2, 16, times=2.0), read(1, 32, readings=40), limit=DurationLimit(1.5, tolerance_s))
    assert (twice.outcome, "40 ms more" in twice.limit) == (outcome, tolerance_s > 0)


def test_a_candidate_with_smaller_batches_is_compared_at_equal_rows() -> None:
    stable = read(1, 32, readings=40)
    same = measure(read(2, 16), stable)
    assert same.outcome is Outcome.SUCCESSFUL
    assert _ratio(same) == pytest.approx(1.0, abs=0.1)
    twice = measure(read(2, 16, times=2.0), stable)
    assert twice.outcome is Outcome.FAILED
    assert _ratio(twice) == pytest.approx(2.0, abs=0.2)
    assert twice.progress is not None
    assert twice.progress >= 1


def test_batches_that_the_stable_revision_lacks_are_overestimated_there() -> None:
    """So that no candidate is convicted for batches of another size."""
    assert measure(read(1, 4), read(2, 64, readings=40)).outcome is Outcome.SUCCESSFUL
    assert measure(read(1, 64), read(2, 4, readings=40)).outcome is Outcome.SUCCESSFUL


def test_earlier_batches_count_for_sizes_that_are_no_more() -> None:
    stable, earlier = read(1, 64, readings=40), read(2, 4, readings=40)
    slow = read(3, 4, times=2.5)
    assert measure(slow, stable).outcome is not Outcome.FAILED
    assert measure(slow, stable, earlier).outcome is Outcome.FAILED


def test_too_few_executions_prove_nothing_and_none_to_compare_with_decide_nothing() -> None:
    assert measure(read(1, 8, readings=2), read(2, 8)).outcome is Outcome.INCONCLUSIVE
    assert measure(read(1, 8), read(2, 8, readings=2)).outcome is Outcome.INCONCLUSIVE
    assert measure(NOTHING, NOTHING).outcome is Outcome.INCONCLUSIVE
    alone = measure(read(1, 8), NOTHING)
    assert (alone.outcome, alone.message) == (None, "not compared: the stable revision executes nothing")
    unmeasured = measure(VersionSignals(1.0, 50), VersionSignals(1.0, 50))
    assert unmeasured.outcome is None


@pytest.mark.parametrize("variation", [0.05, 0.5])
def test_error_rates_are_those_that_are_stated(variation: float) -> None:
    """Of a hundred candidates each: as long as the stable revision, at the square root of the limit, and at the
    limit.
    """
    outcomes_by: dict[float, list[Outcome | None]] = {1.0: [], LIMIT**0.5: [], LIMIT: []}
    for times, outcomes in outcomes_by.items():
        for seed in range(100):
            stable = read(2 * seed, 16, readings=20, variation=variation)
            candidate = read(2 * seed + 1, 8, times, readings=20, per_reading=2, variation=variation)
            outcomes.append(measure(candidate, stable).outcome)
    assert outcomes_by[1.0].count(Outcome.FAILED) == 0
    assert outcomes_by[LIMIT**0.5].count(Outcome.FAILED) <= 5
    assert outcomes_by[LIMIT].count(Outcome.SUCCESSFUL) <= 5
    assert outcomes_by[1.0].count(Outcome.SUCCESSFUL) >= 60
    assert outcomes_by[LIMIT].count(Outcome.FAILED) >= 20
