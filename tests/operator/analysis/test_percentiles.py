"""Percentiles at equal traffic: by the share of requests above the limit, however they come together."""

from dataclasses import replace

import numpy as np
import pytest
from tests.operator.analysis.versions import durations, total

from argosy.analysis.limits import DurationLimit
from argosy.analysis.percentiles import Baseline, baseline, comparable, percentile
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.verdict import Measurement, Outcome

LIMIT, CONFIDENCE = 2.0, 0.95


def read(
    seed: int, requests: int = 50, times: float = 1.0, readings: int = 40, together: int = 1, delay_s: float = 0.0
) -> VersionSignals:
    """Return readings of a second each, with durations of an exponential tail above 10 ms. `together`: requests that
    take equally long, as in one batch.
    """
    random = np.random.default_rng(seed)
    parts = []
    for _ in range(readings):
        seconds = times * (0.010 + random.exponential(0.010, -(-requests // together)).repeat(together)[:requests])
        parts.append(VersionSignals(1.0, requests, latency=durations(seconds), queue_delay_s=delay_s))
    return total(*parts)


def measure(candidate: VersionSignals, *stable: VersionSignals, name: str = "p99", limit: float = LIMIT) -> Measurement:
    baselines = [one for signals in stable if (one := baseline(signals)) is not None]
    return percentile(name, DurationLimit(limit), CONFIDENCE, candidate, baselines)


@pytest.mark.parametrize("name", ["p50", "p95", "p99"])
def test_the_same_latency_passes_and_three_times_as_much_does_not(name: str) -> None:
    same = measure(read(1), read(2), name=name)
    assert same.outcome is Outcome.SUCCESSFUL
    assert same.value == pytest.approx(same.stable, rel=0.3)
    slow = measure(read(1, times=3.0), read(2), name=name)
    assert slow.outcome is Outcome.FAILED
    assert "at equal traffic" in slow.message


def test_a_candidate_with_less_traffic_may_wait_for_its_window_in_addition() -> None:
    """With a few requests a batch is not full before its window ends; with more of them it is."""
    stable = read(1, 400)
    waits = read(2, 20, readings=100, delay_s=0.2)
    slow = VersionSignals(waits.seconds, waits.answered, latency=read(3, 20, 3.0, 100).latency)
    assert measure(slow, stable).outcome is Outcome.FAILED
    slow = VersionSignals(waits.seconds, waits.answered, latency=slow.latency, queue_delay_s=0.2)
    allowed = measure(slow, stable)
    assert allowed.outcome is Outcome.SUCCESSFUL
    assert "at more traffic" in allowed.message


def test_a_candidate_with_more_traffic_is_not_compared() -> None:
    more = measure(read(1, 400, 3.0), read(2, 20))
    assert more.outcome is None
    assert "never had as much traffic" in more.message
    assert measure(read(1, 400, 3.0), read(2, 20), read(3, 400)).outcome is Outcome.FAILED


def test_a_baseline_of_another_hour_alone_does_not_convict() -> None:
    """By night the stable version had as few requests as the candidate has by day, and shorter ones."""
    by_night, candidate = baseline(read(1, 50)), read(2, 50, 3.0)
    assert by_night is not None

    def judged(present: VersionSignals) -> Measurement:
        at_present = baseline(present)
        assert at_present is not None
        return percentile("p99", DurationLimit(LIMIT), CONFIDENCE, candidate, [by_night, at_present], at_present)

    as_slow = judged(read(3, 400, 3.0))
    assert as_slow.outcome is Outcome.INCONCLUSIVE
    assert "at present it takes" in as_slow.message
    assert judged(read(3, 400, 3.0, readings=2)).outcome is Outcome.INCONCLUSIVE
    assert judged(read(3, 400)).outcome is Outcome.FAILED


def test_too_few_requests_prove_nothing() -> None:
    assert measure(read(1, readings=2), read(2)).outcome is Outcome.INCONCLUSIVE
    assert measure(read(1), read(2, readings=2)).outcome is Outcome.INCONCLUSIVE
    assert measure(read(1, 2, readings=10), read(2)).outcome is Outcome.INCONCLUSIVE
    assert measure(VersionSignals(), read(2)).outcome is Outcome.INCONCLUSIVE
    assert measure(VersionSignals(1.0, 50)).outcome is None


def test_a_limit_that_the_stable_revision_exceeds_itself_decides_nothing() -> None:
    too_near = measure(read(1), read(2), limit=1.01, name="p50")
    assert too_near.outcome is None
    assert "not judged" in too_near.message


@pytest.mark.parametrize("together", [1, 10])
def test_error_rates_are_those_that_are_stated(together: int) -> None:
    """Of a hundred candidates each: as fast as the stable revision, and with a p99 at three times its own, whether
    slow requests come one by one or ten in a batch.
    """
    outcomes_by: dict[float, list[Outcome | None]] = {1.0: [], 3.0: []}
    for times, outcomes in outcomes_by.items():
        for seed in range(100):
            stable = read(2 * seed, 100, readings=60, together=together)
            candidate = read(2 * seed + 1, 100, times, readings=60, together=together)
            outcomes.append(measure(candidate, stable).outcome)
    assert outcomes_by[1.0].count(Outcome.FAILED) == 0
    assert outcomes_by[3.0].count(Outcome.SUCCESSFUL) <= 5
    assert outcomes_by[1.0].count(Outcome.SUCCESSFUL) >= 80
    assert outcomes_by[3.0].count(Outcome.FAILED) >= 80


def test_the_baseline_of_the_most_similar_traffic_is_taken() -> None:
    latency = durations(np.full(10, 0.01))
    assert latency is not None
    many = latency + latency + latency + latency + latency + latency
    rates = [Baseline(rate, many) for rate in (1.0, 8.0, 30.0, 100.0)]
    assert comparable(10.0, rates) == rates[1]
    assert comparable(19.0, rates) == rates[2]
    assert comparable(200.0, rates) is None
    assert comparable(8.0, [Baseline(8.0, latency)]) is None


def test_the_shares_of_the_queue_are_in_the_message() -> None:
    slow, stable = read(1, 50, 4.0), read(2, 50)
    queued = replace(slow, queue=durations(np.full(2000, 0.05)))
    assert "in the queue" not in measure(queued, stable).message
    both = measure(queued, replace(stable, queue=durations(np.full(2000, 0.002))))
    assert both.outcome is Outcome.FAILED
    assert "at equal traffic (6" in both.message
    assert "% of it in the queue, 10% there)" in both.message
