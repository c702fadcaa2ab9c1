"""What holds requests up, as a status tells it, and as another operator remembers it from there."""

from datetime import datetime

from argosy.api.status import BottleneckStatus
from argosy.autoscaling.bottlenecks.bottleneck import Bottleneck, BottleneckKind
from argosy.autoscaling.bottlenecks.diagnose import BottleneckReport, Memory

_TIME = "%Y-%m-%dT%H:%M:%SZ"


def bottleneck_status(reported: BottleneckReport | None) -> BottleneckStatus | None:
    """Return what is told; None where nothing is."""
    if reported is None:
        return None
    bottleneck = reported.bottleneck
    return BottleneckStatus(
        stage=bottleneck.stage,
        kind=bottleneck.kind,
        evidence=bottleneck.evidence,
        advice=bottleneck.advice,
        share=bottleneck.share,
        since=reported.since.strftime(_TIME),
        measured=reported.measured_at.strftime(_TIME),
    )


def restored(status: BottleneckStatus | None, now: datetime) -> Memory:
    """Return what a process knows that only has the status which another wrote. It counts as found now, so that it
    stands until measurements say otherwise; a kind or a time that this release does not know is forgotten.
    """
    if status is None or status.since is None or status.measured is None:
        return Memory()
    try:
        kind = BottleneckKind(status.kind)
        since, measured = datetime.fromisoformat(status.since), datetime.fromisoformat(status.measured)
    except ValueError:
        return Memory()
    bottleneck = Bottleneck(status.stage, kind, status.evidence, status.advice, status.share)
    return Memory(BottleneckReport(bottleneck, since, measured), {bottleneck.key: since}, last_present=now)
