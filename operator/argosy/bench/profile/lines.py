"""What a measurement elsewhere says, as lines of its log: its progress, and at the end all that was measured."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.bench.profile.points import Failure, Memory, Point, Sweep

RESULT: Final = "argosy-profile-result: "
"""Before the line that has the result. A model's own output may be in the same log."""
PROGRESS: Final = "argosy-profile: "
"""Before a line of progress."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A sweep, and the GPUs or the CPU that it was measured on."""

    sweep: Sweep
    machine: str


def result_line(measured: Measured) -> str:
    """Return the line that has the result."""
    return RESULT + json.dumps(_encoded(measured), separators=(",", ":"))


def result_of(line: str) -> Measured | None:
    """Return the result that a line has; None where it has none."""
    if not line.startswith(RESULT):
        return None
    try:
        return _decoded(json.loads(line.removeprefix(RESULT)))
    except (ValueError, KeyError, TypeError):
        return None


def _encoded(measured: Measured) -> dict[str, Any]:
    return {
        "machine": measured.machine,
        "points": [
            [p.instances, p.batch, p.throughput, p.p50, p.p95, p.requests, p.memory.host, p.memory.gpu]
            for p in measured.sweep.points
        ],
        "failures": [[failure.instances, failure.batch, failure.message] for failure in measured.sweep.failures],
    }


def _decoded(document: Mapping[str, Any]) -> Measured:
    points = [_point(*values) for values in document["points"]]
    failures = [Failure(*values) for values in document["failures"]]
    return Measured(Sweep(points, failures), str(document["machine"]))


def _point(
    instances: int, batch: int, rate: float, p50: float, p95: float, requests: int, host: int | None, gpu: int | None
) -> Point:
    return Point(instances, batch, rate, p50, p95, requests, Memory(host, gpu))
