"""The error rate of the candidate: Wald's test between the acceptable and the unacceptable rate.

Requests fail together where an execution fails all of its batch, so each counts by the inverse of the design effect:
the variance of the number of failures between readings over that of independent ones.
"""

from math import sqrt
from statistics import NormalDist
from typing import Final

from argosy.analysis.sequential import Decision, RateTest
from argosy.api.model.rollout.analysis import Analysis
from argosy.api.values.quantity import MILLIONTHS, THOUSANDTHS
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.verdict import Measurement, Outcome

ERROR_RATE: Final = "errorRate"
STABLE_FAILS: Final = "the stable revision fails as many requests"
_HIGHEST = 1 - 5e-7
"""Above every acceptable rate, of which the highest is a millionth below 1."""
_NOTHING: Final = VersionSignals()
_REMARKABLE: Final = 1.5
"""The design effect from which on it is part of the message."""
OUTCOMES: Final = {
    Decision.ACCEPTABLE: Outcome.SUCCESSFUL,
    Decision.UNACCEPTABLE: Outcome.FAILED,
    Decision.OPEN: Outcome.INCONCLUSIVE,
}


def confidence(analysis: Analysis) -> float:
    """Return the confidence that the spec states, from 0 to 1."""
    return analysis.confidence / THOUSANDTHS


def error_test(analysis: Analysis) -> RateTest:
    """Return the test that the spec states."""
    rates = analysis.error_rate
    unacceptable = min(rates.unacceptable / MILLIONTHS, _HIGHEST)
    return RateTest(rates.acceptable / MILLIONTHS, unacceptable, confidence(analysis))


def error_rate(
    analysis: Analysis, recent: VersionSignals, stable: VersionSignals, restored: VersionSignals = _NOTHING
) -> Measurement:
    """Return the measurement of the candidate's errors: `recent` ones, and those `restored` from a status, of which it
    is not known how many came together, so that they clear the candidate, and do not convict it.

    A candidate that would be convicted is inconclusive while the stable revision fails as many of its requests at the
    same time: then the cause is elsewhere, and to go back would not help.
    """
    candidate = recent + restored
    test, failed, requests = error_test(analysis), candidate.failed, candidate.requests
    outcome = OUTCOMES[_decide(test, candidate)]
    if outcome is Outcome.FAILED and restored.failed:
        outcome = OUTCOMES[_decide(test, recent)]
        outcome = outcome if outcome is Outcome.FAILED else Outcome.INCONCLUSIVE
    message = f"{failed:.0f} of {requests:.0f} requests failed{_together(candidate)}"
    if outcome is Outcome.FAILED and _stable_fails_too(test, candidate, stable):
        outcome = Outcome.INCONCLUSIVE
        message += f", and {STABLE_FAILS}: {stable.failed:.0f} of {stable.requests:.0f}"
    elif outcome is Outcome.INCONCLUSIVE and not failed:
        message += f"; {test.fewest_samples} without a failure are needed"
    return Measurement(
        ERROR_RATE,
        failed / requests if requests else None,
        f"acceptable {test.acceptable:.4%}, unacceptable {test.unacceptable:.4%}",
        round(requests),
        f"sequential probability ratio test, confidence {test.confidence:.1%}",
        outcome,
        stable.failed / stable.requests if stable.requests else None,
        message,
        test.progress(*_independent(candidate)) if requests else None,
    )


def _decide(test: RateTest, version: VersionSignals) -> Decision:
    return test.decide(*_independent(version))


def _independent(version: VersionSignals) -> tuple[float, float]:
    """Return how many requests failed, and of how many, as if all were independent."""
    effect = version.failure_design_effect
    return version.failed / effect, version.requests / effect


def _together(version: VersionSignals) -> str:
    """Return a remark where failures come together."""
    effect = version.failure_design_effect
    return f" ({effect:.1f} at once, which count as one)" if effect >= _REMARKABLE else ""


def _stable_fails_too(test: RateTest, candidate: VersionSignals, stable: VersionSignals) -> bool:
    """Return whether the stable revision is as bad by the same test, and the candidate not significantly worse."""
    if _decide(test, stable) is not Decision.UNACCEPTABLE:
        return False
    here, there = candidate.failed / candidate.requests, stable.failed / stable.requests
    both = (candidate.failed + stable.failed) / (candidate.requests + stable.requests)
    deviation = sqrt(both * (1 - both) * (1 / candidate.requests + 1 / stable.requests))
    return here - there <= NormalDist().inv_cdf(test.confidence) * deviation


def counts_of(measurement: Measurement) -> VersionSignals:
    """Return the requests and failures that a measurement of the error rate was made from, after a restart."""
    failed = round((measurement.value or 0.0) * measurement.samples)
    return VersionSignals(answered=measurement.samples, errors=failed)
