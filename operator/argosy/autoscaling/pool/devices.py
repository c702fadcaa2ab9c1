"""What each model of a plan sits on, and what is left there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from argosy.planning.facts import Demand, Gpu, PoolFacts
from argosy.planning.packing.capacity import FULL_COMPUTE, FreeCapacity, usable_memory
from argosy.planning.plan import Placement, PoolPlan

_Slot = tuple[str, int]
"""A GPU, by its node and its index there."""


@dataclass(frozen=True, slots=True)
class Devices:
    """By model: how many `replicas` it has, and each GPU of a known size that it sits on, with what is left on it."""

    replicas: Mapping[str, int]
    gpus: Mapping[str, tuple[tuple[Gpu, FreeCapacity], ...]]

    @classmethod
    def of(cls, facts: PoolFacts, plan: PoolPlan) -> "Devices":
        """Of one pool, in one pass."""
        sizes = {(node.name, gpu.index): gpu for node in facts.nodes for gpu in node.gpus}
        here: dict[_Slot, list[Placement]] = {}
        for server in plan.servers:
            for placement in server.placements:
                for index in placement.gpus:
                    here.setdefault((server.node, index), []).append(placement)
        by_model: dict[str, list[tuple[Gpu, FreeCapacity]]] = {}
        for slot, placements in here.items():
            if (gpu := sizes.get(slot)) is not None:
                left = _left(gpu, facts.headroom, placements)
                for placement in placements:
                    by_model.setdefault(placement.model, []).append((gpu, left))
        return cls(replicas_of(plan), {model: tuple(every) for model, every in by_model.items()})

    def smallest(self, model: str) -> int:
        """Return bytes of the smallest GPU that it sits on; 0 on none."""
        return min((gpu.memory for gpu, _ in self.gpus.get(model, ())), default=0)

    def instances(self, demand: Demand) -> int | None:
        """Return how many instances more each device that it sits on has room for; None where that is not known."""
        need = demand.footprint
        if need.exclusive or (not need.memory and not need.compute):
            return None
        memory, compute = need.memory // demand.instances, need.compute // demand.instances
        return min((_times(left, memory, compute) for _, left in self.gpus.get(demand.model, ())), default=None)


def replicas_of(plan: PoolPlan) -> dict[str, int]:
    """Of each model, how many a plan has."""
    by_model: dict[str, int] = {}
    for placement in (placement for server in plan.servers for placement in server.placements):
        by_model[placement.model] = by_model.get(placement.model, 0) + 1
    return by_model


def _left(gpu: Gpu, headroom: int, placements: Iterable[Placement]) -> FreeCapacity:
    here = list(placements)
    memory = usable_memory(gpu, headroom) - sum(placement.memory for placement in here)
    return FreeCapacity(memory, FULL_COMPUTE - sum(placement.compute for placement in here))


def _times(free: FreeCapacity, memory: int, compute: int) -> int:
    """How often so much fits."""
    by_memory = free.memory // memory if memory else None
    by_compute = free.compute // compute if compute else None
    return max(0, min(placement for placement in (by_memory, by_compute) if placement is not None))
