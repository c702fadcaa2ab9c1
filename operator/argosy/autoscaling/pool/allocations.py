"""Allocations filled into the specs of models and ensembles, where these leave them to Argosy."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from argosy.api import InferenceModel, Member, Resource, ServingPool
from argosy.api.model.batching.dynamic import Batching
from argosy.api.scalingstatus import ScalingStatus
from argosy.api.status import InferenceModelStatus
from argosy.api.values.reuse import Reused
from argosy.autoscaling.decision import Allocation, Decision
from argosy.autoscaling.policy import Bounds, Policy

_US = 1e6


def allocations(
    policies: Mapping[str, Policy], decisions: Mapping[str, Decision], statuses: Mapping[str, ScalingStatus]
) -> dict[str, Allocation]:
    """Return the allocation of each member that scales, by identity: as decided, or else as its status has it."""
    return {
        name: decisions[name].allocation.within(policy.bounds)
        if name in decisions
        else restored_allocation(statuses.get(name), policy.bounds)
        for name, policy in policies.items()
    }


def restored_allocation(status: ScalingStatus | None, bounds: Bounds) -> Allocation:
    """Return the allocation that a status has, within the bounds; their minimum without a status."""
    if status is None:
        return Allocation(bounds.min_replicas, bounds.min_instances).within(bounds)
    delay = status.max_queue_delay_microseconds
    window_s = None if delay is None else delay / _US
    return Allocation(status.replicas, status.instances, window_s, status.max_batch_size).within(bounds)


def scaled_resources(
    resources: Iterable[Resource],
    policies: Mapping[str, Policy],
    allocations: Mapping[str, Allocation],
    reused: Reused | None = None,
) -> Iterator[Resource]:
    """Yield the resources with their allocations; both mappings are by identity. `reused`: those of the round before,
    so that an unchanged allocation gives the same spec object.
    """
    values = reused or Reused()
    for resource in resources:
        if isinstance(resource, ServingPool):
            yield resource
        else:
            identity = resource.identity
            policy, allocation = policies.get(identity), allocations.get(identity)
            fewest = policy.bounds.min_replicas if policy else 0
            scaled = partial(scaled_resource, resource, allocation, fewest)
            yield values.value(identity, (resource, allocation, fewest), scaled)


def scaled_resource(member: Member, allocation: Allocation | None, fewest: int = 0) -> Member:
    """Return the member with the replicas, instances, window and batch size of its allocation, except for those that
    its spec sets. Of decided replicas, `fewest` and at least one must be placed; of those that the spec sets, its
    `minReplicas` and at least one, or all of them where it has none.
    """
    spec, least = member.spec, member.spec.min_replicas
    replicas = spec.fewest_replicas
    needed = replicas if least is None else min(max(least, 1), replicas)
    changes: dict[str, object] = {}
    if spec.replicas is None and allocation is not None:
        replicas = allocation.replicas
        needed = min(max(fewest, 1), replicas)
        changes = {"replicas": replicas}
    changes |= {"min_replicas": needed} if needed != spec.least_replicas else {}
    if isinstance(member, InferenceModel) and allocation is not None:
        if member.spec.instances is None and not member.spec.instance_groups and allocation.instances > 1:
            changes["instances"] = allocation.instances
        if member.spec.batching is not None:
            changes["batching"] = _batching(member.spec.batching, allocation)
    changes = {name: value for name, value in changes.items() if getattr(spec, name) != value}
    return member.model_copy(update={"spec": spec.model_copy(update=changes)}) if changes else member


def with_planned_instances(member: Member, status: object) -> Member:
    """Return the member with the instances that the plan gives it where its spec has none, by its status."""
    if not isinstance(member, InferenceModel) or not isinstance(status, InferenceModelStatus):
        return member
    planned = max((placement.instances for placement in status.placement), default=1)
    if member.spec.instances is not None or member.spec.instance_groups or planned == 1:
        return member
    return member.model_copy(update={"spec": member.spec.model_copy(update={"instances": planned})})


def _batching(batching: Batching, allocation: Allocation) -> Batching:
    """Return the batching with the window and the largest batch of the allocation. The size of requests that clients
    may send stays.
    """
    changes: dict[str, object] = {}
    if allocation.window_s is not None:
        changes["max_queue_delay_microseconds"] = round(allocation.window_s * _US)
    if (most := allocation.max_batch) is not None:
        smaller = [size for size in batching.preferred_batch_sizes if size < most]
        changes["preferred_batch_sizes"] = type(batching.preferred_batch_sizes)((*smaller, most))
    return batching.model_copy(update=changes) if changes else batching
