"""The traces, each with a model whose service curve was measured, so that its peak takes about eight replicas."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from argosy.fleet.scaling.decision import Allocation
from argosy.fleet.scaling.policy import Bounds, Pace, Policy, Targets
from argosy.simulation import traces
from argosy.simulation.member import Workload
from argosy.simulation.service import ServiceCurve, interpolated
from argosy.simulation.traces import Trace

CURVES = Path(__file__).parent / "curves.json"
RATE = 25.0
"""Requests a second that one replica takes at most: curves keep their shape, and time is stretched to this."""
PEAK = 8
MOST = 24
_BUDGET = 3.0
STARTUP_S = 30.0


@dataclass(frozen=True)
class Case:
    """A workload and the policy for it: the same on every trace but for the budget and the least replicas."""

    workload: Workload
    policy: Policy

    @property
    def name(self) -> str:
        """The trace's."""
        return self.workload.trace.name


def cases() -> list[Case]:
    """All that there is data for."""
    return list(_seeded())


def _seeded() -> Iterator[Case]:
    peak = PEAK * RATE * 0.8
    yield _case(traces.diurnal(peak, seconds=10800), "embed")
    yield _case(traces.flash_crowd(peak / 10, seconds=5400), "safety")
    yield _case(traces.bursts(peak / 2, seconds=5400), "embed", to_zero=True)
    yield _case(traces.ramp(peak, seconds=5400), "safety")


def constant() -> Case:
    """A load that never changes, for four replicas."""
    return _case(traces.constant(RATE * 2.6, 3600), "embed")


def _case(trace: Trace, model: str, to_zero: bool = False) -> Case:
    curve = scaled_curve(model)
    budget = _BUDGET * curve.seconds[-1]
    workload = Workload(trace.name, trace, curve, budget, Allocation(1), startup_s=STARTUP_S)
    return Case(workload, own_policy(workload, 0 if to_zero else 1))


def own_policy(workload: Workload, least: int) -> Policy:
    """Defaults, and what the resource says: the SLO and the bounds."""
    bounds = Bounds(
        min_replicas=least,
        max_replicas=MOST,
        max_instances=4,
        max_window_s=workload.budget_s / 10,
        max_batch=workload.curve.max_batch,
    )
    return Policy(bounds, Targets(latency={"p99": workload.budget_s}), Pace(), workload.startup_s)


def scaled_curve(model: str, most_rows: int = 8) -> ServiceCurve:
    """As measured, in its own time."""
    found = json.loads(CURVES.read_text())["models"][model]
    points = [(int(rows), seconds) for rows, seconds in found["seconds"].items() if int(rows) <= most_rows]
    curve = interpolated(points, tuple(found["slowdown"]), found["variation"])
    factor = curve.throughput() / RATE
    return replace(curve, seconds=tuple(float(each) for each in np.array(curve.seconds) * factor))
