"""The forms of models and ensembles that are acted upon: what was decided is filled in where their spec is free."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from argosy.api import Ensemble, InferenceModel, Resource, ServingPool
from argosy.api.model.batching import Batching
from argosy.api.servingpool import RuntimeName
from argosy.api.status import ScalingStatus
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.decision import Allocation, Decision
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.pool.from_spec import Member, policy_of, scales
from argosy.autoscaling.pool.restored import allocation_of
from argosy.planning.demand.grouping import runs_of

_US = 1e6


def policies(resources: Iterable[Resource], now: datetime) -> dict[str, Policy]:
    """Return the policy of each member that follows what is measured, by identity: what an ensemble runs does so with
    it.
    """
    every = list(resources)
    pools = {resource.key: resource for resource in every if isinstance(resource, ServingPool)}
    staged = _staged([resource for resource in every if isinstance(resource, Ensemble)])
    by_identity: dict[str, Policy] = {}
    for resource in every:
        if isinstance(resource, ServingPool) or resource.pool_key not in pools:
            continue
        in_place = pools[resource.pool_key].spec.runtime.name is RuntimeName.ARGOSY
        in_ensemble = isinstance(resource, InferenceModel) and (resource.pool_key, resource.name) in staged
        if in_ensemble or scales(resource):
            by_identity[resource.identity] = policy_of(resource, now, windows=in_place, in_ensemble=in_ensemble)
    return by_identity


def _staged(ensembles: Iterable[Ensemble]) -> set[tuple[PoolKey, str]]:
    """Return the models, by pool and name, that ensembles run which scale."""
    pools: dict[PoolKey, list[Ensemble]] = {}
    for resource in ensembles:
        pools.setdefault(resource.pool_key, []).append(resource)
    by_identity: set[tuple[PoolKey, str]] = set()
    for key, members in pools.items():
        runs = runs_of(members)
        by_identity |= {(key, model) for resource in members if scales(resource) for model in runs[resource.name]}
    return by_identity


def allocations(
    policies: Mapping[str, Policy], decisions: Mapping[str, Decision], restored: Mapping[str, ScalingStatus]
) -> dict[str, Allocation]:
    """Return what each member that scales is to have, by identity: what was decided, or else what its status told."""
    return {
        name: decisions[name].allocation.within(policy.bounds)
        if name in decisions
        else allocation_of(restored.get(name), policy.bounds)
        for name, policy in policies.items()
    }


def scaled_resources(
    resources: Iterable[Resource], policies: Mapping[str, Policy], allocations: Mapping[str, Allocation]
) -> Iterator[Resource]:
    """Yield the resources as they are acted upon; both mappings are by identity."""
    for resource in resources:
        if isinstance(resource, ServingPool):
            yield resource
        else:
            policy = policies.get(resource.identity)
            fewest = policy.bounds.min_replicas if policy else 0
            yield scaled_resource(resource, allocations.get(resource.identity), fewest)


def scaled_resource(member: Member, allocation: Allocation | None, fewest: int) -> Member:
    """Return the member with the replicas, the instances, the window and the batch size of the allocation where its
    spec leaves them free, and with `fewest` replicas that it has to have. Without an allocation it has to have all that
    it asks for.
    """
    spec = member.spec
    if spec.replicas is not None or allocation is None:
        changes: dict[str, object] = {"min_replicas": spec.fewest_replicas}
    else:
        serving = min(1, allocation.replicas)  # what serves has one replica that never gives way
        changes = {"replicas": allocation.replicas, "min_replicas": min(max(fewest, serving), allocation.replicas)}
    if isinstance(member, InferenceModel) and allocation is not None:
        changes |= _model_changes(member, allocation)
    changes = {name: value for name, value in changes.items() if getattr(spec, name) != value}
    return member.model_copy(update={"spec": spec.model_copy(update=changes)}) if changes else member


def _model_changes(model: InferenceModel, allocation: Allocation) -> dict[str, object]:
    spec = model.spec
    changes: dict[str, object] = {}
    if spec.instances is None and not spec.instance_groups and allocation.instances > 1:
        changes["instances"] = allocation.instances
    if spec.batching is not None:
        changes["batching"] = _batching(spec.batching, allocation)
    return changes


def _batching(batching: Batching, allocation: Allocation) -> Batching:
    """With the window, and with no larger batches than decided: clients may still send as large requests as ever."""
    changes: dict[str, object] = {}
    if allocation.window_s is not None:
        changes["max_queue_delay_microseconds"] = round(allocation.window_s * _US)
    if (most := allocation.max_batch) is not None:
        smaller = [size for size in batching.preferred_batch_sizes if size < most]
        changes["preferred_batch_sizes"] = type(batching.preferred_batch_sizes)((*smaller, most))
    return batching.model_copy(update=changes) if changes else batching
