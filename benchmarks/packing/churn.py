"""A fleet in which models come and go: the GPUs that it takes then, next to a plan from nothing, and what was moved."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.packing.fleets.families import GIB, H100, machines
from benchmarks.packing.fleets.fleet import Fleet, Model
from benchmarks.packing.placing import Device
from benchmarks.packing.planner import reconciled, snapshot_of, timed

from argosy.planning.consolidation.moves import Step, applied
from argosy.planning.consolidation.search import StepLimits, find_steps
from argosy.planning.facts import PoolFacts
from argosy.planning.plan import FleetPlan

RUNNING = 300
"""Models that run at any time: about 80 GPUs."""
_AT_ONCE = 4
"""Arrivals, and departures, between two plans."""
_PER_NODE = 8
_LIMITS = StepLimits(bytes=1 << 50, moves=1000)
"""No hour passes between the changes, so that there is no budget for it."""


@dataclass
class Moves:
    """What plans moved of models that stayed: GiB, GPUs that came free by it, and the same where those of a slot of 2,
    4 or 8 free GPUs on one node count that came by it.
    """

    gib: float = 0.0
    freed: int = 0
    with_slots: int = 0

    def add(self, before: FleetPlan, after: FleetPlan) -> None:
        """Count what changed from one plan to the next."""
        old, new = _devices(before), _devices(after)
        moved = {seat for seat in old if seat[0] in {name for name, _ in new} and seat not in new}
        self.gib += sum(old[seat] for seat in moved) / (1 << 30)
        used = {device for _, devices in new for device in devices}
        freed = len({device for _, devices in moved for device in devices} - used)
        self.freed += freed
        if moved:
            self.with_slots += max(freed, *(now - was for now, was in zip(_slots(after), _slots(before), strict=True)))

    def per_gpu(self, gpus: int) -> float | None:
        """Return the GiB for each of so many GPUs; None without any."""
        return self.gib / gpus if gpus else None


def measured(changes: int, seed: int, running: int = RUNNING) -> dict[str, float | None]:
    """Return all numbers after so many arrivals, and as many departures.

    `auto`: the fleet is consolidated after each plan. Without it nothing is, and what is recommended then is counted.
    """
    facts = _facts(running + changes, running, seed)
    off, auto = _Churned(facts, running, changes, seed), _Churned(facts, running, changes, seed, consolidates=True)
    left, moves, recommended = off.run(), auto.run(), off.recommended()
    fresh = timed(_of(facts, auto.names, None)).plan
    return {
        "gpus_after_churn_off": off.plan.gpus_used,
        "gpus_after_churn": auto.plan.gpus_used,
        "gpus_fresh": fresh.gpus_used,
        "after_churn_over_fresh_off": off.plan.gpus_used / fresh.gpus_used,
        "after_churn_over_fresh": auto.plan.gpus_used / fresh.gpus_used,
        "churn_gib_moved_off": left.gib,
        "churn_gib_moved": moves.gib,
        "gib_per_gpu_freed": moves.per_gpu(moves.with_slots),
        "gib_per_gpu_freed_without_slots": moves.per_gpu(moves.freed),
        "recommended_gpus": sum(step.freed for step in recommended),
        "recommended_gib": sum(step.bytes for step in recommended) / (1 << 30),
        "consolidation_cpu_ms": auto.cpu_s * 1000 / max(1, auto.searches),
    }


class _Churned:
    """A fleet in which models come and go; `plan` is what runs, `names` the models."""

    def __init__(
        self, facts: Sequence[PoolFacts], running: int, changes: int, seed: int, *, consolidates: bool = False
    ) -> None:
        self._facts, self._running, self._changes, self._consolidates = facts, running, changes, consolidates
        self._random = random.Random(f"churn {seed}")
        self.names = [f"m-{at:05}" for at in range(running)]
        self.plan = timed(_of(facts, self.names, None)).plan
        self.cpu_s, self.searches = 0.0, 0

    def run(self) -> Moves:
        """Let models come and go. Return what was moved."""
        moves, last = Moves(), self._running + self._changes
        for first in range(self._running, last, _AT_ONCE):
            arrived = [f"m-{at:05}" for at in range(first, min(first + _AT_ONCE, last))]
            gone = set(self._random.sample(self.names, len(arrived)))
            self.names = [name for name in self.names if name not in gone] + arrived
            self._follow(_of(self._facts, self.names, self.plan), moves)
            while self._consolidates and (steps := self.recommended()):
                (facts,) = _of(self._facts, self.names, self.plan)
                self._follow((applied(facts, steps[0].moves),), moves)
        return moves

    def recommended(self) -> tuple[Step, ...]:
        """Return what would be moved now."""
        (facts,) = _of(self._facts, self.names, self.plan)
        begun = time.process_time()
        steps = find_steps(facts, (), _LIMITS)
        self.cpu_s, self.searches = self.cpu_s + time.process_time() - begun, self.searches + 1
        return steps

    def _follow(self, facts: Sequence[PoolFacts], moves: Moves) -> None:
        before, self.plan = self.plan, timed(facts).plan
        moves.add(before, self.plan)


def _slots(plan: FleetPlan) -> list[int]:
    """Return how many of the nodes' free GPUs are in slots of 8, of 4 and of 2."""
    used = Counter(server.node for pool in plan.pools for server in pool.servers for _ in server.gpus)
    free = [_PER_NODE - count for count in used.values()]
    unused = sum(pool.gpus_total for pool in plan.pools) - _PER_NODE * len(used)
    return [unused + sum(count // size * size for count in free) for size in (8, 4, 2)]


def _facts(models: int, running: int, seed: int) -> tuple[PoolFacts, ...]:
    """Return the facts with every model that is ever there, on nodes for those that run at a time."""
    rng = random.Random(f"churning models {seed}")
    every = tuple(Model(f"m-{at:05}", GIB // 2 * rng.randint(4, 70), 50 * rng.randint(1, 6)) for at in range(models))
    return reconciled(snapshot_of(Fleet("churn", machines("n", H100, _PER_NODE, running / 3, spare=1), every))).facts


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
