"""Requests that were mirrored to the candidate: its errors and latencies while it has no traffic, and its answers.

A candidate passes if the share of answers that differ is not that of the limit, by the same sequential test as errors.
Rows are judged over all requests, by the share of those whose largest element has the same index.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from argosy.analysis.errors import OUTCOMES
from argosy.analysis.percentiles import Baseline
from argosy.analysis.sequential import RateTest
from argosy.api.model.rollout.shadow import OutputTolerance, Shadow
from argosy.api.values.quantity import MILLIONTHS, THOUSANDTHS
from argosy.autoscaling.metrics.names import Failure
from argosy.autoscaling.metrics.shadow_counts import ShadowOutput, ShadowSignals
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.verdict import Measurement, Outcome

DIFFERENT_ANSWERS, TOP1 = "differentAnswers", "top1Agreement"
_SAMPLED: Final = "SAMPLED"
_ACCEPTABLE: Final = 10
"""The acceptable share is that part of the limit, as by default of the error rates."""
_HIGHEST = 1 - 1e-6


def as_requests(version: VersionSignals) -> VersionSignals:
    """Return a version's signals with the requests that were mirrored to it as its own.

    The stable version answered all of those that failed, so the candidate caused the failures whatever their reason.
    """
    shadow = version.shadow
    if shadow is None:
        return version
    errors = max(0.0, shadow.failed - shadow.out_of_memory)
    failures = {Failure.OUT_OF_MEMORY: shadow.out_of_memory} if shadow.out_of_memory else {}
    mirrored = VersionSignals(
        answered=shadow.answered + errors, errors=errors, failures=failures, latency=shadow.candidate
    )
    return version + mirrored.as_reading()


def paired(candidate: VersionSignals) -> tuple[Baseline, ...]:
    """Return the stable version's latency of the same requests as a baseline; empty before there are any.

    Neither has the time in queues, so that they are compared whatever the traffic of both versions.
    """
    shadow = candidate.shadow
    if shadow is None or shadow.stable is None or not candidate.seconds:
        return ()
    return (Baseline(candidate.requests / candidate.seconds, shadow.stable),)


def without_verdict(measurement: Measurement) -> Measurement:
    """Return a measurement of durations that decides nothing: mirrored requests wait for models that they call."""
    if measurement.outcome is None:
        return measurement
    why = "mirrored requests call other models, and wait there behind all others"
    return replace(measurement, outcome=None, message=f"{measurement.message}; not judged: {why}")


def answers(shadow: Shadow, signals: ShadowSignals, confidence: float) -> Iterator[Measurement]:
    """Yield the measurements of the answers: of all requests, and of the rows of each output that is judged by them."""
    yield _different(shadow.max_different / MILLIONTHS, signals, confidence)
    for tolerance in shadow.tolerances:
        if tolerance.top1_agreement is not None:
            output = signals.outputs.get(tolerance.output, ShadowOutput())
            yield _rows(tolerance, tolerance.top1_agreement / THOUSANDTHS, output, confidence)


def _different(limit: float, signals: ShadowSignals, confidence: float) -> Measurement:
    compared, different = signals.compared, signals.different
    text = f"<= {limit:.4%} of the answers"
    message = f"{different:.0f} of {compared:.0f} answers differ{_worst(signals.outputs)}"
    if not compared:
        sampled = signals.obstacles.get(_SAMPLED, 0.0)
        why = f"none was compared{_why_not(signals.obstacles)}"
        # Where all answers are drawn at random they never will be, and errors and latencies decide.
        outcome = None if sampled else Outcome.INCONCLUSIVE
        return Measurement(DIFFERENT_ANSWERS, None, text, 0, "", outcome, None, why)
    return _judged(DIFFERENT_ANSWERS, different / compared, text, limit, different, compared, confidence, message)


_OBSTACLES: Final = {
    "IN_FLIGHT": "skipped, as many copies as may be are under way",
    "BUSY": "skipped, requests waited for the stable version all the time",
    "NOT_READY": "skipped, the candidate cannot answer",
    "MEMORY": "skipped, the server holds as much for comparisons as it may",
    _SAMPLED: "drawn at random",
    "STABLE_FAILED": "failed by the stable version",
    "ERROR": "impossible to compare, as the server's log says",
}
"""Why requests are not compared, by the server's word for it."""


def _why_not(obstacles: Mapping[str, float]) -> str:
    """Return why requests are not compared, the most first; before there are any, that they are waited for."""
    causes = sorted(((count, why) for why, count in obstacles.items() if count), reverse=True)
    return (
        ": " + "; ".join(f"{count:.0f} are {_OBSTACLES.get(why, why)}" for count, why in causes) if causes else " yet"
    )


def _rows(tolerance: OutputTolerance, share: float, output: ShadowOutput, confidence: float) -> Measurement:
    text = f">= {share:.1%} of the rows of {tolerance.output}"
    if not output.rows:
        why = f"no row of {tolerance.output} was compared yet"
        return Measurement(TOP1, None, text, 0, "", Outcome.INCONCLUSIVE, None, why)
    agreeing = min(output.agreeing, output.rows)
    message = f"{agreeing:.0f} of {output.rows:.0f} rows of {tolerance.output} have the same largest element"
    events = output.rows - agreeing
    return _judged(TOP1, agreeing / output.rows, text, 1 - share, events, output.rows, confidence, message)


def _judged(
    name: str, value: float, text: str, limit: float, events: float, samples: float, confidence: float, message: str
) -> Measurement:
    """Return the measurement of a share of events: more than `limit` of the samples are too many."""
    if not limit:
        outcome = Outcome.FAILED if events else Outcome.SUCCESSFUL
        return Measurement(name, value, text, round(samples), "one is enough", outcome, None, message)
    test = RateTest(min(limit, _HIGHEST) / _ACCEPTABLE, min(limit, _HIGHEST), confidence)
    outcome = OUTCOMES[test.decide(events, samples)]
    if outcome is Outcome.INCONCLUSIVE and not events:
        message += f"; {test.fewest_samples} are needed"
    words = f"sequential probability ratio test against {test.acceptable:.4%}, confidence {confidence:.1%}"
    progress = test.progress(events, samples)
    return Measurement(name, value, text, round(samples), words, outcome, None, message, progress)


def _worst(outputs: Mapping[str, ShadowOutput]) -> str:
    """Return the worst example in words."""
    examples = [(one, name) for name, output in outputs.items() for one in output.examples if output.different]
    if not examples:
        return ""
    example, output = max(examples, key=lambda pair: pair[0].size)
    return f", most in {output} of request {example.request_id}"
