"""What was mirrored to the candidate, as a status has it, and back after a restart."""

from collections.abc import Mapping

from argosy.api.rolloutstatus import (
    ShadowCount,
    ShadowExampleStatus,
    ShadowLatency,
    ShadowOutputStatus,
    ShadowStatus,
)
from argosy.autoscaling.metrics.durations import Durations
from argosy.autoscaling.metrics.shadow_counts import ShadowExample, ShadowOutput, ShadowSignals

MOST_OUTPUTS = 8
"""Outputs in a status, those first in which most answers differ."""
_OUTCOMES = ("equal", "different", "failed", "uncompared", "skipped", "canceled")


def to_status(signals: ShadowSignals) -> ShadowStatus:
    """Return the counts, latencies and worst examples."""
    counts = {outcome: round(signals.outcomes.get(outcome, 0.0)) for outcome in _OUTCOMES}
    outputs = sorted(signals.outputs.items(), key=lambda pair: (-pair[1].different, pair[1].agreeing - pair[1].rows))
    return ShadowStatus(
        **counts,
        failures=_counts(signals.failures),
        not_compared=_counts(signals.obstacles),
        stable_latency=_latency(signals.stable),
        candidate_latency=_latency(signals.candidate),
        outputs=tuple(_output(name, output) for name, output in outputs[:MOST_OUTPUTS]),
    )


def from_status(status: ShadowStatus | None) -> ShadowSignals | None:
    """Return the counts and examples of a status. Latencies begin again, as percentiles cannot be added."""
    if status is None:
        return None
    return ShadowSignals(
        {outcome: float(getattr(status, outcome)) for outcome in _OUTCOMES},
        {count.reason: float(count.requests) for count in status.failures},
        {count.reason: float(count.requests) for count in status.not_compared},
        {
            output.output: ShadowOutput(
                output.different,
                output.rows,
                output.agreeing_rows,
                output.largest_difference,
                tuple(ShadowExample(one.request_id, one.kind, one.size) for one in output.examples),
            )
            for output in status.outputs
        },
    )


def _counts(counts: Mapping[str, float]) -> tuple[ShadowCount, ...]:
    return tuple(
        ShadowCount(reason=reason, requests=round(count)) for reason, count in sorted(counts.items()) if round(count)
    )


def _latency(durations: Durations | None) -> ShadowLatency | None:
    if durations is None:
        return None
    quantile = durations.histogram.quantile
    return ShadowLatency(p50=quantile(0.5), p95=quantile(0.95), p99=quantile(0.99))


def _output(name: str, output: ShadowOutput) -> ShadowOutputStatus:
    return ShadowOutputStatus(
        output=name,
        different=round(output.different),
        largest_difference=output.largest,
        rows=round(output.rows),
        agreeing_rows=round(output.agreeing),
        examples=tuple(
            ShadowExampleStatus(request_id=one.request_id, kind=one.kind, size=one.size) for one in output.examples
        ),
    )
