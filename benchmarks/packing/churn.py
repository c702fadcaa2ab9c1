"""A fleet in which models come and go: the GPUs that it takes then, next to a plan from nothing, and what was moved."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.packing.fleets.families import GIB, H100, machines
from benchmarks.packing.fleets.fleet import Fleet, Model
from benchmarks.packing.placing import Device
from benchmarks.packing.planner import reconciled, snapshot_of, timed

from argosy.planning.facts import PoolFacts
from argosy.planning.plan import FleetPlan

RUNNING = 300
"""Models that run at any time: about 80 GPUs."""
_AT_ONCE = 4
"""Arrivals, and departures, between two plans."""


@dataclass
class Moves:
    """What plans moved of models that stayed: GiB, and GPUs that came free by it."""

    gib: float = 0.0
    freed: int = 0

    def add(self, before: FleetPlan, after: FleetPlan) -> None:
        """Count what changed from one plan to the next."""
        old, new = _devices(before), _devices(after)
        moved = {seat for seat in old if seat[0] in {name for name, _ in new} and seat not in new}
        self.gib += sum(old[seat] for seat in moved) / (1 << 30)
        used = {device for _, devices in new for device in devices}
        self.freed += len({device for _, devices in moved for device in devices} - used)


def measured(changes: int, seed: int, running: int = RUNNING) -> dict[str, float | None]:
    """Return all numbers after so many arrivals, and as many departures."""
    facts = _facts(running + changes, running, seed)
    rng = random.Random(f"churn {seed}")
    names = [f"m-{at:05}" for at in range(running)]
    plan, moves = timed(_of(facts, names, None)).plan, Moves()
    for first in range(running, running + changes, _AT_ONCE):
        arrived = [f"m-{at:05}" for at in range(first, min(first + _AT_ONCE, running + changes))]
        gone = set(rng.sample(names, len(arrived)))
        names = [name for name in names if name not in gone] + arrived
        before, plan = plan, timed(_of(facts, names, plan)).plan
        moves.add(before, plan)
    fresh = timed(_of(facts, names, None)).plan
    return {
        "gpus_after_churn": plan.gpus_used,
        "gpus_fresh": fresh.gpus_used,
        "after_churn_over_fresh": plan.gpus_used / fresh.gpus_used,
        "churn_gib_moved": moves.gib,
        "gib_per_gpu_freed": moves.gib / moves.freed if moves.freed else None,
    }


def _facts(models: int, running: int, seed: int) -> tuple[PoolFacts, ...]:
    """Return the facts with every model that is ever there, on nodes for those that run at a time."""
    rng = random.Random(f"churning models {seed}")
    every = tuple(Model(f"m-{at:05}", GIB // 2 * rng.randint(4, 70), 50 * rng.randint(1, 6)) for at in range(models))
    return reconciled(snapshot_of(Fleet("churn", machines("n", H100, 8, running / 3, spare=1), every))).facts


def _of(facts: Sequence[PoolFacts], names: Sequence[str], plan: FleetPlan | None) -> tuple[PoolFacts, ...]:
    """Return the facts with these models alone, and what runs of them."""
    alive = set(names)
    pools = {pool.pool: pool.current for pool in plan.pools} if plan is not None else {}
    return tuple(
        replace(
            pool,
            groups=tuple(group for group in pool.groups if group.name in alive),
            current=tuple(
                replace(server, placed={name: gpus for name, gpus in server.placed.items() if name in alive})
                for server in pools.get(pool.pool, ())
                if alive & server.placed.keys()
            ),
        )
        for pool in facts
    )


def _devices(plan: FleetPlan) -> dict[tuple[str, tuple[Device, ...]], int]:
    """Return the bytes of each model by the GPUs that it is on."""
    return {
        (placement.model, tuple((server.node, gpu) for gpu in placement.gpus)): placement.memory
        for pool in plan.pools
        for server in pool.servers
        for placement in server.placements
    }
