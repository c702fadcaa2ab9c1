"""The bottleneck in a status, and what a new operator process restores from it."""

from datetime import datetime

from argosy.api.scalingstatus import BottleneckStatus
from argosy.api.values.times import parse_time, timestamp
from argosy.autoscaling.bottlenecks.diagnose import BottleneckReport, BottleneckState
from argosy.autoscaling.bottlenecks.rules import Bottleneck, BottleneckKind


def bottleneck_status(reported: BottleneckReport | None) -> BottleneckStatus | None:
    """Return the bottleneck as a status reports it; None if there is none."""
    if reported is None:
        return None
    bottleneck = reported.bottleneck
    return BottleneckStatus(
        stage=bottleneck.stage,
        kind=bottleneck.kind,
        evidence=bottleneck.evidence,
        advice=bottleneck.advice,
        share=bottleneck.share,
        since=timestamp(reported.since),
        measured=timestamp(reported.measured_at),
    )


def restored(status: BottleneckStatus | None, now: datetime) -> BottleneckState:
    """Return the memory of a process that has only the status which another one wrote. The bottleneck counts as
    present now, so that it stays until measurements clear it. One of an unknown kind, or with a time that is no time
    with a zone, is dropped.
    """
    if status is None or status.kind not in list(BottleneckKind):
        return BottleneckState()
    since, measured = parse_time(status.since or ""), parse_time(status.measured or "")
    if since is None or measured is None:
        return BottleneckState()
    kind = BottleneckKind(status.kind)
    bottleneck = Bottleneck(status.stage, kind, status.evidence, status.advice, status.share)
    return BottleneckState(BottleneckReport(bottleneck, since, measured), {bottleneck.key: since}, last_present=now)
