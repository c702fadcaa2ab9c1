"""Failures of the candidate that need no statistics: lost instances, memory that ran out, loads that failed."""

from collections.abc import Callable
from typing import Final

from argosy.autoscaling.metrics.names import Failure
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.verdict import Measurement, Outcome

_Count = Callable[[VersionSignals], float]
IMMEDIATE: Final[tuple[tuple[str, str, _Count], ...]] = (
    ("instancesLost", "instances ended by themselves", lambda version: version.instances_lost),
    ("outOfMemory", "requests ran out of memory", lambda version: version.failures.get(Failure.OUT_OF_MEMORY, 0.0)),
    ("failedLoads", "loads failed", lambda version: version.failed_loads),
)


def immediate_failures(candidate: VersionSignals, stable: VersionSignals) -> tuple[Measurement, ...]:
    """Return a failed measurement for each kind of failure that the candidate had more often than the stable revision.

    A GPU or a node that fails ends the instances of both, which says nothing of the candidate.
    """
    return tuple(
        Measurement(
            name,
            count,
            "0",
            round(candidate.requests),
            "one is enough",
            Outcome.FAILED,
            other,
            f"{count:.0f} {words} of the candidate, {other:.0f} of the stable revision",
        )
        for name, words, of in IMMEDIATE
        if (count := of(candidate)) > (other := of(stable))
    )
