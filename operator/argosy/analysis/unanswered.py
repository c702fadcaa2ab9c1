"""Requests that the candidate does not answer: their clients cancel them, or they time out.

One of them says nothing, since clients cancel for reasons of their own, and queues are full for load. A share that
exceeds the stable revision's at the same time is the candidate's: it hangs, or answers later than clients wait. Where
the stable revision has no requests at the same time, as under Recreate, its share before is taken. Where that is not
known either, a candidate that leaves nearly all unanswered is convicted.
"""

from math import sqrt
from statistics import NormalDist
from typing import Final

from argosy.analysis.errors import confidence, error_test
from argosy.analysis.sequential import Decision, RateTest
from argosy.api.model.rollout.analysis import Analysis
from argosy.autoscaling.metrics.unanswered import UnansweredRequests
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.verdict import Measurement, Outcome

UNANSWERED: Final = "unanswered"
_NOTHING: Final = VersionSignals()
_UNKNOWN: Final = 0.5, 0.9
"""The acceptable and the unacceptable share where nothing is known of the stable revision."""


def unanswered(
    analysis: Analysis, candidate: VersionSignals, stable: VersionSignals, earlier: VersionSignals = _NOTHING
) -> Measurement | None:
    """Return the measurement of the requests that the candidate did not answer; None if there are none. `earlier`: the
    stable revision before the analysis.

    It convicts or decides nothing, so that a rollout does not wait for it where clients cancel often. The test is
    between half of the unacceptable rate in excess of the stable revision's share, and all of it. So a candidate with
    the same share is convicted with a probability of about the third power of 1 - confidence.
    """
    here = candidate.unanswered
    if not here.count:
        return None
    excess, sure = error_test(analysis).unacceptable, confidence(analysis)
    message = f"{here.count:.0f} of {here.requests:.0f} requests were canceled or timed out"
    limit, outcome, progress = f"less than {excess:.4%} more than of the stable revision", None, None
    test, share, compared = _reference(stable.unanswered, earlier.unanswered, excess, sure)
    if test is None:
        message += "; not judged: nearly all of the stable revision's may be, too"
    else:
        effect = here.design_effect
        progress = test.progress(here.count / effect, here.requests / effect)
        if test.decide(here.count / effect, here.requests / effect) is Decision.UNACCEPTABLE:
            outcome = Outcome.FAILED
        message += f", {compared}"
    words = f"sequential probability ratio test of the excess, confidence {sure:.1%}"
    return Measurement(
        UNANSWERED, here.count / here.requests, limit, round(here.requests), words, outcome, share, message, progress
    )


def _reference(
    present: UnansweredRequests, earlier: UnansweredRequests, excess: float, sure: float
) -> tuple[RateTest | None, float | None, str]:
    """Return the test, None where it cannot be made, the stable revision's own share, and what it is, in words."""
    for there, when in ((present, ""), (earlier, ", before")):
        if there.requests:
            usual = _upper(there, sure)
            test = RateTest(usual + excess / 2, usual + excess, sure) if usual + excess < 1 else None
            words = f"{there.count:.0f} of {there.requests:.0f} of the stable revision{when}"
            return test, there.count / there.requests, words
    unknown = "an unknown share of the stable revision, so that nearly all are too many"
    return RateTest(*_UNKNOWN, sure), None, unknown


def _upper(version: UnansweredRequests, sure: float) -> float:
    """Return the upper end of Wilson's confidence interval of the share."""
    independent, share = version.requests / version.design_effect, version.count / version.requests
    z = NormalDist().inv_cdf(sure)
    middle = share + z * z / (2 * independent)
    width = z * sqrt(share * (1 - share) / independent + (z / (2 * independent)) ** 2)
    return (middle + width) / (1 + z * z / independent)
