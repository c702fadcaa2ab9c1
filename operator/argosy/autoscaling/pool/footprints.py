"""What models' processes use, as statuses report it: by new measurements, but not by each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from argosy.autoscaling.metrics.signals import Signals

NEWER_AFTER = timedelta(seconds=30)
"""Shortest time between two reports, since each is a write of a status."""
REPORTED_AGAIN_AFTER = timedelta(minutes=30)
"""Time after which a report is replaced even if its numbers have changed little, so that its age says something."""
NOTICEABLE = 0.1
"""Smallest change that is reported, as a share of the former bytes."""


@dataclass(frozen=True, slots=True)
class MeasuredFootprint:
    """Bytes of all instances of one version on one server, where they are the most: on the host, and on its GPUs.

    None where a server does not measure it.
    """

    measured_at: datetime
    host: int | None
    gpu: int | None


def measured_footprints(
    before: Mapping[str, MeasuredFootprint], signals: Mapping[str, Signals | None]
) -> dict[str, MeasuredFootprint]:
    """Return the report of each measured model, by the keys of `signals`, which are those of all models.

    The last report of a model that is not measured any more stays, with its time.
    """
    reports = {name: _next(before.get(name), measured) for name, measured in signals.items()}
    return {name: report for name, report in reports.items() if report is not None}


def _next(before: MeasuredFootprint | None, signals: Signals | None) -> MeasuredFootprint | None:
    if signals is None or (signals.host_memory is None and signals.gpu_memory is None):
        return before
    report = MeasuredFootprint(signals.at, _bytes(signals.host_memory), _bytes(signals.gpu_memory))
    if before is None:
        return report
    age = report.measured_at - before.measured_at
    differs = _differs(before.host, report.host) or _differs(before.gpu, report.gpu)
    return report if age >= REPORTED_AGAIN_AFTER or (age >= NEWER_AFTER and differs) else before


def _bytes(value: float | None) -> int | None:
    return None if value is None else round(value)


def _differs(before: int | None, after: int | None) -> bool:
    if before is None or after is None:
        return before != after
    return abs(after - before) > NOTICEABLE * before
