"""What a thousand simulated rollouts say: false rollbacks, missed bad versions, requests until a conviction."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.simulation.service import ServiceCurve

from .rollouts import Ending, fewest, simulated
from .serving import Quality

CURVE = ServiceCurve(tuple(0.050 + 0.010 * rows for rows in range(1, 17)), variation=0.1)
"""50 ms and 10 ms a row, up to 16 rows: one instance answers up to 76 requests a second."""
LOADS = {"low": 0.1, "middle": 0.5, "full": 0.95}
"""Of what one instance answers with the best batches."""
GOOD, BAD = 0.0002, 0.01
"""Shares of requests that fail. The first is a fifth of what is acceptable by default."""
TIMES = 3.0
Map = Callable[[Callable[["Trial"], Ending], Iterable["Trial"]], Iterable[Ending]]


def slower(times: float) -> ServiceCurve:
    """Return the curve of a version whose executions take so many times as long."""
    return ServiceCurve(tuple(seconds * times for seconds in CURVE.seconds), variation=CURVE.variation)


CANDIDATES: Mapping[str, Quality] = {
    "same": Quality(CURVE, GOOD),
    "same, by batch": Quality(CURVE, GOOD, by_batch=True),
    "failing": Quality(CURVE, BAD),
    "slow": Quality(slower(TIMES), GOOD),
}


@dataclass(frozen=True)
class Trial:
    """One rollout: a candidate's name, the load's, and the seed."""

    candidate: str
    load: str
    seed: int

    def run(self) -> Ending:
        """Return how it ends."""
        rate = LOADS[self.load] * CURVE.throughput()
        candidate = CANDIDATES[self.candidate]
        stable = Quality(CURVE, GOOD, candidate.by_batch)
        return simulated(stable, candidate, rate, self.seed)


def measured(runs: int, mapped: Map) -> dict[str, Any]:
    """Return the figures of so many rollouts of each candidate at each load. `mapped` runs trials, in their order."""
    cells = {(candidate, load): _endings(candidate, load, runs, mapped) for candidate in CANDIDATES for load in LOADS}
    convicted = [one.requests for load in LOADS for one in cells["failing", load] if one.phase == "Held"]
    best = fewest(BAD)
    return {
        "runs": runs,
        "requests_to_convict_over_sprt": round(sum(convicted) / len(convicted) / best, 3) if convicted else None,
        "requests_of_sprt": round(best, 1),
        "false_rollbacks_per_1000": max(_worst(cells, same, "Held") for same in CANDIDATES if same.startswith("same")),
        "missed_bad_per_1000": _worst(cells, "failing", "Promoted"),
        "missed_slow_per_1000": _worst(cells, "slow", "Promoted"),
        "cells": {f"{candidate} {load}": _cell(endings) for (candidate, load), endings in cells.items()},
    }


def _endings(candidate: str, load: str, runs: int, mapped: Map) -> list[Ending]:
    return list(mapped(Trial.run, [Trial(candidate, load, seed) for seed in range(runs)]))


def _worst(cells: Mapping[tuple[str, str], list[Ending]], candidate: str, phase: str) -> float:
    """Return how many of 1000 rollouts end so, at the load with most of them."""
    return max(_per_1000(cells[candidate, load], phase) for load in LOADS)


def _per_1000(endings: list[Ending], phase: str) -> float:
    return round(1000 * sum(one.phase == phase for one in endings) / len(endings), 1)


def _cell(endings: list[Ending]) -> dict[str, Any]:
    """Return the figures of one candidate at one load."""
    reasons = Counter(f"{one.phase} {one.reason}".strip() for one in endings)
    return {
        "endings": dict(reasons.most_common()),
        "mean_requests": round(sum(one.requests for one in endings) / len(endings), 1),
        "mean_seconds": round(sum(one.seconds for one in endings) / len(endings), 1),
    }
