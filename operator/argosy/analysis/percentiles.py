"""Percentiles of the latency, compared with the stable revision's at equal traffic.

That a percentile is at most `limit` times the stable revision's is a statement on a rate: that no more than so many
requests take longer than `limit` times the stable revision's percentile. Wald's test decides on that rate, on the
buckets of histograms. Slow requests come together, in one batch or behind one queue, so each counts by the inverse of
the design effect: the variance of their number between readings over that of independent requests.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import NormalDist
from typing import Final

from argosy.analysis.limits import DurationLimit
from argosy.analysis.sequential import RateTest
from argosy.autoscaling.metrics.durations import Durations
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.verdict import Measurement, Outcome

SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_EQUAL: Final = 1.5
"""Traffic is equal where neither has more than that many times the other's."""
_FEWEST_READINGS: Final = 5
_EASIEST, _HARDEST = 4, 0.8
"""The acceptable rate is at most the unacceptable one by the first, and the test is not made if it is more than that
share of it.
"""
_TEST = "sequential probability ratio test of the share above it, confidence {:.1%}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The latency of the stable revision at some traffic: requests a second of a server. `queue_share`: the part of it
    in which they wait for an instance; None where it is not measured.
    """

    rate: float
    latency: Durations
    queue_delay_s: float = 0.0
    queue_share: float | None = None


def baseline(version: VersionSignals) -> Baseline | None:
    """Return the baseline that a version's signals are; None without requests."""
    if version.latency is None or not version.seconds:
        return None
    rate = version.requests / version.seconds
    return Baseline(rate, version.latency, version.queue_delay_s, _queue_share(version))


def comparable(rate: float, baselines: Iterable[Baseline]) -> Baseline | None:
    """Return the baseline of the most similar traffic, or else of the least among those with more. None if all have
    less: then the candidate may be slower for its traffic alone.
    """
    enough = [one for one in baselines if one.rate * _EQUAL >= rate and one.latency.readings >= _FEWEST_READINGS]
    equal = [one for one in enough if one.rate <= rate * _EQUAL]
    if equal:
        return max(equal, key=lambda one: one.latency.count)
    return min(enough, key=lambda one: one.rate, default=None)


def percentile(
    name: str,
    limit: DurationLimit,
    confidence: float,
    candidate: VersionSignals,
    baselines: Sequence[Baseline],
    present: Baseline | None = None,
) -> Measurement:
    """Return the measurement of a percentile. `present`: the stable revision at the same time, if it has requests,
    whatever its traffic: an earlier baseline alone does not convict, as requests of another hour may be others.
    """
    share, own = SHARES[name], baseline(candidate)
    text, test = limit.text, _TEST.format(confidence)
    if own is None or own.latency.readings < _FEWEST_READINGS:
        outcome = Outcome.INCONCLUSIVE if baselines else None
        why = "too few requests of the candidate" if baselines else "servers do not measure latencies in histograms"
        return Measurement(name, None, text, 0, test, outcome, None, why)
    value, samples = own.latency.histogram.quantile(share), round(own.latency.count)
    reference = comparable(own.rate, baselines)
    if reference is None and any(one.latency.readings < _FEWEST_READINGS for one in baselines):
        why = "too few requests of the stable revision"
        return Measurement(name, value, text, samples, test, Outcome.INCONCLUSIVE, None, why)
    if reference is None:
        why = "not compared: the stable revision never had as much traffic since the rollout began"
        return Measurement(name, value, text, samples, test, None, None, why)
    stable = reference.latency.histogram.quantile(share)
    decided, why, progress = _decide(share, limit, confidence, own, reference)
    if decided is Outcome.FAILED and present is not None and reference is not present:
        decided, why = _at_present(share, limit, own, present)
    traffic, waits = _traffic(own, reference), _waits(own, reference)
    message = f"{_text(value)}, {_text(stable)} of the stable revision at {traffic} traffic{waits}{why}"
    return Measurement(name, value, text, samples, test, decided, stable, message, progress)


def _traffic(own: Baseline, reference: Baseline) -> str:
    return "equal" if reference.rate <= own.rate * _EQUAL else "more"


def _text(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else f"{seconds * 1000:.4g} ms"


def _decide(
    share: float, limit: DurationLimit, confidence: float, own: Baseline, reference: Baseline
) -> tuple[Outcome | None, str, float | None]:
    """Return what the durations above the limit prove, a remark, and how far the test is."""
    low, high = _interval(share, confidence, reference.latency)
    allowance = _allowance(own, reference)
    bounds = own.latency.histogram.bounds
    certain = bisect_left(bounds, limit.of(high) + allowance) if high < inf else len(bounds) - 1
    possible = bisect_right(bounds, limit.of(low) + allowance) - 1
    rest = 1 - share
    usual = _share_above(reference.latency, certain)
    acceptable = max(rest / _EASIEST, sqrt(usual * rest))
    if acceptable > _HARDEST * rest:
        return None, f"; not judged: {usual:.2%} of its requests take longer than the limit, too", None
    test = RateTest(acceptable, rest, confidence)
    against = test.progress(*_independent(own.latency, certain)) if bounds[certain] < inf else 0.0
    in_favour = test.progress(*_independent(own.latency, possible)) if possible >= 0 else 0.0
    if against >= 1:
        return Outcome.FAILED, "", against
    if in_favour <= -1:
        return Outcome.SUCCESSFUL, "", in_favour
    return Outcome.INCONCLUSIVE, "", against if against > 0 else min(in_favour, 0.0)


def _allowance(own: Baseline, reference: Baseline) -> float:
    """Return the seconds that the candidate may wait in addition for its batches, with less traffic."""
    return 0.0 if reference.rate <= own.rate * _EQUAL else own.queue_delay_s


def _at_present(share: float, limit: DurationLimit, own: Baseline, present: Baseline) -> tuple[Outcome, str]:
    """Return whether a candidate that is convicted by an earlier baseline is slow at the same time, too."""
    here, there = (one.latency.histogram.quantile(share) for one in (own, present))
    enough = present.latency.readings >= _FEWEST_READINGS
    if enough and there is not None and (here is None or here > limit.of(there) + _allowance(own, present)):
        return Outcome.FAILED, ""
    return Outcome.INCONCLUSIVE, f", before; at present it takes {_text(there)}, so that requests may be others"


def _interval(share: float, confidence: float, latency: Durations) -> tuple[float, float]:
    """Return the confidence interval of a percentile, in seconds, by the binomial distribution of its rank."""
    histogram = latency.histogram
    index = bisect_left(histogram.counts, share * latency.count)
    width = NormalDist().inv_cdf(confidence) * sqrt(latency.design_effect(index) * share * (1 - share) / latency.count)
    low = histogram.quantile(max(share - width, 1 / (2 * latency.count)))
    high = histogram.quantile(share + width) if share + width < 1 else None
    return low or 0.0, inf if high is None else high


def _share_above(latency: Durations, index: int) -> float:
    """Return the share of durations above a bound; of none, as if half of one were."""
    return max(latency.above(index), 0.5) / latency.count


def _independent(latency: Durations, index: int) -> tuple[float, float]:
    """Return how many durations are above a bound, and of how many, as if all were independent."""
    effect = latency.design_effect(index)
    return latency.above(index) / effect, latency.count / effect


def _waits(own: Baseline, reference: Baseline) -> str:
    """Return how much of the latencies is time in a queue, which shows where one that is slower has it from."""
    if own.queue_share is None or reference.queue_share is None:
        return ""
    return f" ({own.queue_share:.0%} of it in the queue, {reference.queue_share:.0%} there)"


def _queue_share(version: VersionSignals) -> float | None:
    latency, queue = version.latency, version.queue
    if latency is None or queue is None or not latency.histogram.total_s:
        return None
    return min(1.0, queue.histogram.total_s / latency.histogram.total_s)
