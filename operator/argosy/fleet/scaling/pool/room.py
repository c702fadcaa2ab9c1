"""What there is to be had for a member beyond what it has, as the last plan shows it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from argosy.api.conditions import Reason
from argosy.api.values.identity import PoolKey
from argosy.fleet.demand.members import Members
from argosy.fleet.facts import Demand, Group, PoolFacts
from argosy.fleet.packing.capacity import FULL_COMPUTE, FreeCapacity, usable_memory
from argosy.fleet.packing.priorities import GroupKey, RankedPlan
from argosy.fleet.plan import PoolPlan
from argosy.fleet.scaling.decision import Decision, Room
from argosy.fleet.scaling.policy import Policy


@dataclass(frozen=True, slots=True)
class Grant:
    """What the last plan gave a member: `placed` replicas of the `asked`, and the room beside them. `gpu_memory`: bytes
    of the smallest GPU that it sits on, 0 on none.
    """

    asked: int
    placed: int
    room: Room
    gpu_memory: int = 0


def hopes(
    ranked: RankedPlan,
    decisions: Mapping[str, Decision],
    members: Mapping[PoolKey, Members],
    policies: Mapping[str, Policy],
) -> dict[GroupKey, int]:
    """How many replicas are wanted of each group that lacked the room for them, or made room for another. `decisions`
    and `policies` are by identity.
    """
    models: dict[tuple[PoolKey, str], int] = {}
    for key, each in members.items():
        for member in (*each.models.values(), *each.ensembles.values()):
            decision, policy = decisions.get(member.identity), policies.get(member.identity)
            if decision is None or policy is None or decision.reason is not Reason.LIMITED_BY_CAPACITY:
                continue
            replicas = min(decision.desired, policy.bounds.max_replicas)
            for model in each.runs.get(member.name, (member.name,)):
                models[key, model] = max(replicas, models.get((key, model), 0))
    wanted = {
        (facts.pool, group.name): _wanted(facts.pool, group, models) for facts in ranked.facts for group in facts.groups
    }
    return {key: replicas for key, replicas in wanted.items() if replicas or key in ranked.shortfalls}


def _wanted(pool: PoolKey, group: Group, models: Mapping[tuple[PoolKey, str], int]) -> int:
    return max((models.get((pool, demand.model), 0) for demand in group.demands), default=0)


def grants(ranked: RankedPlan, hoped: RankedPlan | None, members: Mapping[PoolKey, Members]) -> dict[str, Grant]:
    """What the plan gave each model and ensemble, by identity; `members` are by the pool's key. `hoped`: the plan with
    all that is wanted of what is short, where there is something.
    """
    found: dict[str, Grant] = {}
    hopeful = {plan.pool: plan for plan in hoped.plan.pools} if hoped else {}
    for plan in ranked.plan.pools:
        facts = next(each for each in ranked.facts if each.pool == plan.pool)
        view = _View(facts, plan, _lacks(ranked, plan))
        if hoped is not None:
            better = hopeful[plan.pool]
            view = replace(view, hopes=_lacks(hoped, better), hoped=_replicas(better))
        found |= view.grants(members[plan.pool])
    return found


def _lacks(ranked: RankedPlan, plan: PoolPlan) -> dict[str, str]:
    """By group, what its next replica lacks."""
    missing = {each.group: each.message for each in plan.unplaced}
    return missing | {group: each.message for (pool, group), each in ranked.shortfalls.items() if pool == plan.pool}


@dataclass(frozen=True, slots=True)
class _View:
    """One pool's plan, with what groups lack in it, and in the hoped one, which has so many replicas of each model."""

    facts: PoolFacts
    plan: PoolPlan
    lacks: Mapping[str, str]
    hopes: Mapping[str, str] = field(default_factory=dict)
    hoped: Mapping[str, int] = field(default_factory=dict)

    def grants(self, members: Members) -> dict[str, Grant]:
        found: dict[str, Grant] = {}
        placed, smallest = _replicas(self.plan), self._smallest()
        for group in self.facts.groups:
            missing = self._missing(group.name)
            for demand in group.demands:
                model = members.models[demand.model]
                room = _room(self._instances(demand), self._more(placed, demand.model), missing)
                count, memory = placed.get(demand.model, 0), smallest.get(demand.model, 0)
                found[model.identity] = Grant(model.spec.fewest_replicas, count, room, memory)
        for name, ensemble in members.ensembles.items():
            runs = members.runs[name]
            group_of = next((g.name for g in self.facts.groups if any(d.model in runs for d in g.demands)), "")
            missing = self._missing(group_of)
            count = min((placed.get(model, 0) for model in runs), default=0)
            more = min((self._more(placed, model) for model in runs), default=0)
            found[ensemble.identity] = Grant(ensemble.spec.fewest_replicas, count, _room(None, more, missing))
        return found

    def _missing(self, group: str) -> str:
        """What the next replica of a group lacks. The hoped plan says it also of what made room for another."""
        return self.hopes.get(group) or self.lacks.get(group, "")

    def _more(self, placed: Mapping[str, int], model: str) -> int:
        """Replicas that the hoped plan has beyond those of this one."""
        return max(0, self.hoped.get(model, 0) - placed.get(model, 0))

    def _smallest(self) -> dict[str, int]:
        """By model, bytes of the smallest GPU that it sits on."""
        sizes = {(node.name, gpu.index): gpu.memory for node in self.facts.nodes for gpu in node.gpus}
        found: dict[str, int] = {}
        for server in self.plan.servers:
            for placement in server.placements:
                for size in (sizes[server.node, index] for index in placement.gpus if (server.node, index) in sizes):
                    found[placement.model] = min(size, found.get(placement.model, size))
        return found

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


def _replicas(plan: PoolPlan) -> dict[str, int]:
    """Of each model."""
    found: dict[str, int] = {}
    for placement in (each for server in plan.servers for each in server.placements):
        found[placement.model] = found.get(placement.model, 0) + 1
    return found


def _room(instances: int | None, replicas: int, missing: str) -> Room:
    return Room(instances, replicas, missing) if missing else Room(instances)


def _times(free: FreeCapacity, memory: int, compute: int) -> int:
    """How often so much fits."""
    by_memory = free.memory // memory if memory else None
    by_compute = free.compute // compute if compute else None
    return max(0, min(each for each in (by_memory, by_compute) if each is not None))
