"""What there is to be had for a member beyond what it has, as the last plan shows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from msgspec import structs

from argosy.api.conditions import Reason
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.decision import Decision, SpareCapacity
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.pool.devices import Devices, replicas_of
from argosy.planning.demand.members import Members
from argosy.planning.facts import Demand, Group, PoolFacts
from argosy.planning.packing.priorities import GroupKey, RankedPlan
from argosy.planning.plan import PoolPlan


@dataclass(frozen=True, slots=True)
class Grant:
    """What the last plan gave a member: `placed` replicas of the `requested`, and the room for more.

    `gpu_memory`: bytes of the smallest GPU that it is on, 0 on none.
    """

    requested: int
    placed: int
    spare: SpareCapacity
    gpu_memory: int = 0


def hopes(
    ranked: RankedPlan,
    decisions: Mapping[str, Decision],
    members: Mapping[PoolKey, Members],
    policies: Mapping[str, Policy],
) -> dict[GroupKey, int]:
    """Return how many replicas are wanted of each group that lacked the room for them, or made room for another.
    `decisions` and `policies` are by identity.
    """
    models: dict[tuple[PoolKey, str], int] = {}
    for key, members_of_pool in members.items():
        for member in (*members_of_pool.models.values(), *members_of_pool.ensembles.values()):
            decision, policy = decisions.get(member.identity), policies.get(member.identity)
            if decision is None or policy is None or decision.reason is not Reason.LIMITED_BY_CAPACITY:
                continue
            replicas = min(decision.desired, policy.bounds.max_replicas)
            for model in members_of_pool.runs.get(member.name, (member.name,)):
                models[key, model] = max(replicas, models.get((key, model), 0))
    desired = {
        (facts.pool, group.name): _desired(facts.pool, group, models)
        for facts in ranked.facts
        for group in facts.groups
    }
    return {key: replicas for key, replicas in desired.items() if replicas or key in ranked.shortfalls}


def _desired(pool: PoolKey, group: Group, models: Mapping[tuple[PoolKey, str], int]) -> int:
    return max((models.get((pool, demand.model), 0) for demand in group.demands), default=0)


def grants(ranked: RankedPlan, hoped: RankedPlan | None, members: Mapping[PoolKey, Members]) -> dict[str, Grant]:
    """Return what the plan gave each model and ensemble, by identity; `members` are by the pool's key. `hoped`: the
    plan with all that is wanted of what is short, where there is something.
    """
    granted: dict[str, Grant] = {}
    facts = {facts.pool: facts for facts in ranked.facts}
    hopeful = {plan.pool: plan for plan in hoped.plan.pools} if hoped else {}
    for plan in ranked.plan.pools:
        view = _View(facts[plan.pool], Devices.of(facts[plan.pool], plan), _lacks(ranked, plan))
        if hoped is not None:
            better = hopeful[plan.pool]
            view = replace(view, hopes=_lacks(hoped, better), hoped=replicas_of(better))
        granted |= view.grants(members[plan.pool])
    return granted


def _lacks(ranked: RankedPlan, plan: PoolPlan) -> dict[str, str]:
    """By group, what its next replica lacks."""
    missing = {unplaced.group: unplaced.message for unplaced in plan.unplaced}
    return missing | {
        group: shortfall.message for (pool, group), shortfall in ranked.shortfalls.items() if pool == plan.pool
    }


@dataclass(frozen=True, slots=True)
class _View:
    """One pool's plan, with what groups lack in it, and in the hoped one, which has so many replicas of each model."""

    facts: PoolFacts
    devices: Devices
    lacks: Mapping[str, str]
    hopes: Mapping[str, str] = field(default_factory=dict)
    hoped: Mapping[str, int] = field(default_factory=dict)

    def grants(self, members: Members) -> dict[str, Grant]:
        granted: dict[str, Grant] = {}
        spares: dict[str, SpareCapacity] = {}
        for group in self.facts.groups:
            for demand in group.demands:
                spare = spares[demand.model] = self._spare_capacity(group.name, demand)
                model, memory = members.models[demand.model], self.devices.smallest(demand.model)
                granted[model.identity] = Grant(model.spec.fewest_replicas, self._placed(demand.model), spare, memory)
        for name, ensemble in members.ensembles.items():
            runs = [model for model in members.runs[name] if model in spares]
            placed = min((self._placed(model) for model in members.runs[name]), default=0)
            spare = structs.replace(spares[runs[0]], instances=None) if runs else SpareCapacity()
            granted[ensemble.identity] = Grant(ensemble.spec.fewest_replicas, placed, spare)
        return granted

    def _spare_capacity(self, group: str, demand: Demand) -> SpareCapacity:
        """Return the spare capacity; the plan with more says what is missing also where one made way for another."""
        instances, missing = self.devices.instances(demand), self.hopes.get(group) or self.lacks.get(group, "")
        more = max(0, self.hoped.get(demand.model, 0) - self._placed(demand.model))
        return SpareCapacity(instances, more, missing) if missing else SpareCapacity(instances)

    def _placed(self, model: str) -> int:
        return self.devices.replicas.get(model, 0)
