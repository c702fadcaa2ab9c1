"""What there is to be had for a member beyond what it has, as the last plan shows it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from argosy.api.values.identity import PoolKey
from argosy.fleet.demand.members import Members
from argosy.fleet.facts import Demand, PoolFacts
from argosy.fleet.packing.capacity import FULL_COMPUTE, FreeCapacity, usable_memory
from argosy.fleet.packing.priorities import RankedPlan
from argosy.fleet.plan import Placement, PoolPlan
from argosy.fleet.scaling.decision import Room


@dataclass(frozen=True, slots=True)
class Grant:
    """What the last plan gave a member: `placed` replicas of the `asked`, and the room beside them. `gpu_memory`: bytes
    of the smallest GPU that it sits on, 0 on none.
    """

    asked: int
    placed: int
    room: Room
    gpu_memory: int = 0


def grants(ranked: RankedPlan, hoped: RankedPlan | None, members: Mapping[PoolKey, Members]) -> dict[str, Grant]:
    """What the plan gave each model and ensemble, by identity; `members` are by the pool's key. `hoped`: the plan with
    one replica more of what is short, where there is something.
    """
    found: dict[str, Grant] = {}
    hopes = {plan.pool: plan for plan in hoped.plan.pools} if hoped else {}
    for plan in ranked.plan.pools:
        facts = next(each for each in ranked.facts if each.pool == plan.pool)
        view = _View(facts, plan, _lacks(ranked, plan), _lacks(hoped, hopes[plan.pool]) if hoped else {})
        found |= view.grants(members[plan.pool])
    return found


def _lacks(ranked: RankedPlan, plan: PoolPlan) -> dict[str, str]:
    """By group, what its next replica lacks."""
    missing = {each.group: each.message for each in plan.unplaced}
    return missing | {group: each.message for (pool, group), each in ranked.shortfalls.items() if pool == plan.pool}


@dataclass(frozen=True, slots=True)
class _View:
    """One pool's plan, with what groups lack in it, and in the hoped one."""

    facts: PoolFacts
    plan: PoolPlan
    lacks: Mapping[str, str]
    hopes: Mapping[str, str]

    def grants(self, members: Members) -> dict[str, Grant]:
        found: dict[str, Grant] = {}
        placed, smallest = self._placed(), self._smallest()
        for group in self.facts.groups:
            missing = self._missing(group.name)
            for demand in group.demands:
                model = members.models[demand.model]
                room = _room(self._instances(demand), missing)
                count, memory = placed.get(demand.model, 0), smallest.get(demand.model, 0)
                found[model.identity] = Grant(model.spec.fewest_replicas, count, room, memory)
        for name, ensemble in members.ensembles.items():
            runs = members.runs[name]
            group_of = next((g.name for g in self.facts.groups if any(d.model in runs for d in g.demands)), "")
            missing = self._missing(group_of)
            count = min((placed.get(model, 0) for model in runs), default=0)
            found[ensemble.identity] = Grant(ensemble.spec.fewest_replicas, count, _room(None, missing))
        return found

    def _missing(self, group: str) -> str:
        """What the next replica of a group lacks. The hoped plan says it also of what made room for another."""
        return self.hopes.get(group) or self.lacks.get(group, "")

    def _placed(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for placement in self._placements():
            found[placement.model] = found.get(placement.model, 0) + 1
        return found

    def _smallest(self) -> dict[str, int]:
        """By model, bytes of the smallest GPU that it sits on."""
        sizes = {(node.name, gpu.index): gpu.memory for node in self.facts.nodes for gpu in node.gpus}
        found: dict[str, int] = {}
        for server in self.plan.servers:
            for placement in server.placements:
                for size in (sizes[server.node, index] for index in placement.gpus if (server.node, index) in sizes):
                    found[placement.model] = min(size, found.get(placement.model, size))
        return found

    def _placements(self) -> Iterator[Placement]:
        return (placement for server in self.plan.servers for placement in server.placements)

    def _instances(self, demand: Demand) -> int | None:
        """How many instances more each device that it sits on has room for; None where that is not known."""
        need = demand.footprint
        if need.whole or (not need.memory and not need.compute):
            return None
        memory, compute = need.memory // demand.instances, need.compute // demand.instances
        fits = [_times(free, memory, compute) for free in self._free(demand.model)]
        return min(fits, default=None)

    def _free(self, model: str) -> Iterable[FreeCapacity]:
        """What is left on each GPU that the model sits on."""
        sizes = {(node.name, gpu.index): gpu for node in self.facts.nodes for gpu in node.gpus}
        for server in self.plan.servers:
            for mine in (each for each in server.placements if each.model == model):
                for index in mine.gpus:
                    gpu = sizes.get((server.node, index))
                    if gpu is None:
                        continue
                    here = [each for each in server.placements if index in each.gpus]
                    yield FreeCapacity(
                        usable_memory(gpu, self.facts.headroom) - sum(each.memory for each in here),
                        FULL_COMPUTE - sum(each.compute for each in here),
                    )


def _room(instances: int | None, missing: str) -> Room:
    return Room(instances, 0, 0, missing) if missing else Room(instances)


def _times(free: FreeCapacity, memory: int, compute: int) -> int:
    """How often so much fits."""
    by_memory = free.memory // memory if memory else None
    by_compute = free.compute // compute if compute else None
    return max(0, min(each for each in (by_memory, by_compute) if each is not None))
