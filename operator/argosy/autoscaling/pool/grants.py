"""Grants: the replicas of each member that the last plan placed, and the spare capacity."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from argosy.api import InferenceModel, Member
from argosy.api.conditions import Reason
from argosy.api.status import InferenceModelStatus
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.decision import Decision, SpareCapacity
from argosy.autoscaling.policy import Policy, Served
from argosy.planning.demand.members import Members
from argosy.planning.facts import Demand, Gpu, PoolFacts
from argosy.planning.packing.capacity import FreeCapacity, capacity_left
from argosy.planning.packing.priorities import GroupKey, RankedPlan
from argosy.planning.plan import PoolPlan

_Model = tuple[PoolKey, str]
"""A model, by its pool and its name."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The replicas that were `requested` of the last plan, those that it `placed`, and the `spare` capacity.

    `gpu_memory`: bytes of the smallest GPU that the member is on; 0 if it is on none.
    """

    requested: int
    placed: int
    spare: SpareCapacity
    gpu_memory: int = 0


_UNPLANNED = Grant(0, 0, SpareCapacity())


def unmet(
    ranked: RankedPlan,
    decisions: Mapping[str, Decision],
    members: Mapping[PoolKey, Members],
    policies: Mapping[str, Policy],
) -> dict[GroupKey, int]:
    """Return the desired replicas of each group that capacity limits; 0 for a group that only has a shortfall.
    `decisions` and `policies` are by identity.
    """
    desired = dict.fromkeys(ranked.shortfalls, 0)
    for facts in ranked.facts:
        pool = members[facts.pool]
        groups = {demand.model: (facts.pool, group.name) for group in facts.groups for demand in group.demands}
        for member in (*pool.models.values(), *pool.ensembles.values()):
            decision, policy = decisions.get(member.identity), policies.get(member.identity)
            if decision is not None and policy is not None and decision.reason is Reason.LIMITED_BY_CAPACITY:
                replicas = min(decision.desired, policy.bounds.max_replicas)
                for key in {groups[model] for model in pool.models_of(member.name) if model in groups}:
                    desired[key] = max(replicas, desired.get(key, 0))
    return desired


def grants(
    ranked: RankedPlan,
    larger: RankedPlan | None,
    members: Mapping[PoolKey, Members],
    policies: Mapping[str, Policy],
) -> dict[str, Grant]:
    """Return the grant of each model and ensemble that scales, and of what it runs, by identity; `members` are by the
    pool's key. `larger`: a plan with the replicas that the `unmet` groups desire; None without such groups. An ensemble
    has its models' spare capacity.
    """
    scaled = {key: _scaled(pool, policies) for key, pool in members.items()}
    of_models = _of_models(ranked, larger or ranked, {key for key, of_pool in scaled.items() if of_pool})
    granted: dict[str, Grant] = {}
    for key, pool in members.items():
        for member in scaled[key]:
            own = [of_models.get((key, model), _UNPLANNED) for model in pool.models_of(member.name)] or [_UNPLANNED]
            placed = min(grant.placed for grant in own)
            requested = member.spec.fewest_replicas
            granted[member.identity] = Grant(requested, placed, own[0].spare, own[0].gpu_memory)
    return granted


def _scaled(pool: Members, policies: Mapping[str, Policy]) -> list[Member]:
    """Return the members of a pool that scale, and the models that they run."""
    every: list[Member] = [*pool.models.values(), *pool.ensembles.values()]
    scaled = [member for member in every if member.identity in policies]
    names = {name for member in scaled for name in (member.name, *pool.models_of(member.name))}
    return [member for member in every if member.name in names] if scaled else []


def _of_models(ranked: RankedPlan, larger: RankedPlan, pools: Collection[PoolKey]) -> dict[_Model, Grant]:
    """Return the grant of each model that was planned in these pools."""
    placed, missing = _placed(ranked), _missing(ranked) | _missing(larger)
    more = placed if larger is ranked else _placed(larger)
    plans = {plan.pool: plan for plan in ranked.plan.pools}
    granted: dict[_Model, Grant] = {}
    for facts in (one for one in ranked.facts if one.pool in pools):
        gpus = _gpus(facts, plans[facts.pool])
        for group in facts.groups:
            lacking = missing.get((facts.pool, group.name), "")
            for demand in group.demands:
                key, own = (facts.pool, demand.model), gpus.get(demand.model, ())
                replicas = max(0, more[key] - placed[key]) if lacking else None
                spare = SpareCapacity(_instances(demand, own), replicas, lacking)
                smallest = min((gpu.memory for gpu, _ in own), default=0)
                granted[key] = Grant(demand.replicas, placed[key], spare, smallest)
    return granted


def _missing(ranked: RankedPlan) -> dict[GroupKey, str]:
    """Return the missing resource of each group's next replica, in words, by group."""
    unplaced = {(plan.pool, group.group): group.message for plan in ranked.plan.pools for group in plan.unplaced}
    return unplaced | {key: shortfall.message for key, shortfall in ranked.shortfalls.items()}


def _placed(ranked: RankedPlan) -> Counter[_Model]:
    """Return the number of placed replicas of each model."""
    servers = ((plan.pool, server) for plan in ranked.plan.pools for server in plan.servers)
    return Counter((pool, placement.model) for pool, server in servers for placement in server.placements)


def _gpus(facts: PoolFacts, plan: PoolPlan) -> dict[str, list[tuple[Gpu, FreeCapacity]]]:
    """Return the GPUs of each model, with what the plan leaves free on each. GPUs of unknown size are left out."""
    gpus = {(node.name, gpu.index): gpu for node in facts.nodes for gpu in node.gpus}
    left = capacity_left(facts.nodes, facts.headroom, plan.taken)
    by_model: dict[str, list[tuple[Gpu, FreeCapacity]]] = {}
    for server in plan.servers:
        for placement in server.placements:
            devices = [(server.node, index) for index in placement.gpus if (server.node, index) in left]
            by_model.setdefault(placement.model, []).extend((gpus[device], left[device]) for device in devices)
    return by_model


def _instances(demand: Demand, gpus: Iterable[tuple[Gpu, FreeCapacity]]) -> int | None:
    """Return how many more instances fit on each GPU of a model; None if that is unknown."""
    need = demand.footprint
    memory, compute = need.memory // demand.instances, need.compute // demand.instances
    fits = [free.memory // memory for _, free in gpus if memory]
    fits += [free.compute // compute for _, free in gpus if compute]
    return max(0, min(fits)) if fits and not need.exclusive else None


def served(model: InferenceModel, status: object, grant: Grant | None = None) -> Served:
    """Return the workload that memory has to hold: the loaded versions, by the model's status, the declared footprint,
    and the smallest GPU.
    """
    versions = status.versions if isinstance(status, InferenceModelStatus) else ()
    declared = model.spec.footprint
    footprint = declared.model_dump(mode="json", by_alias=True, exclude_none=True) if declared is not None else {}
    return Served(
        versions=tuple(sorted(version.version for version in versions if version.available_replicas)),
        footprint=", ".join(f"{field} {value}" for field, value in footprint.items()) or "not declared",
        gpu_memory=grant.gpu_memory if grant is not None else 0,
    )
