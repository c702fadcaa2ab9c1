"""The condition Placed, and a replica's placement in a status."""

from collections.abc import Sequence
from typing import Any

from argosy.api import ConditionType, Ensemble, Member, Reason
from argosy.api.status import PlacementStatus
from argosy.planning.amounts import listed
from argosy.planning.nodes.slices import device_names
from argosy.planning.plan import Placement, ServerPlan
from argosy.status.conditions import Finding
from argosy.status.findings.loading import Loading
from argosy.status.preemption.preemptions import loss_clause
from argosy.status.progress.pool_progress import PoolProgress

_MOST = 100
"""How many replicas' places a status shows."""


def placement_on(server: ServerPlan, model: str) -> Placement:
    """Return the model's placement on a server that has it."""
    return next(placement for placement in server.placements if placement.model == model)


def placement_status(server: ServerPlan, version: int, gpus: Sequence[int], instances: int) -> PlacementStatus:
    """Return a replica's place."""
    return PlacementStatus(server=server.name, node=server.node, version=version, gpus=tuple(gpus), instances=instances)


def shared_placements(progress: PoolProgress, member: Ensemble, servers: Sequence[ServerPlan]) -> list[PlacementStatus]:
    """Return the places of an ensemble's or a routed model's replicas: the GPUs of all models that it runs."""
    models = progress.members.runs.get(member.name, ())
    gpus = (sorted({gpu for p in server.placements if p.model in models for gpu in p.gpus}) for server in servers)
    return [placement_status(server, member.spec.version, on, 1) for server, on in zip(servers, gpus, strict=True)]


def serving_fields(
    loading: Loading, servers: Sequence[ServerPlan], placements: Sequence[PlacementStatus]
) -> dict[str, Any]:
    """Return a status's fields for where an ensemble or a routed model is and which versions answer."""
    return {
        "replicas": len(servers),
        "available_replicas": len(loading.available),
        "url": loading.url,
        "grpc_address": loading.grpc_address,
        "versions": loading.versions(),
        "active_version": loading.active_version,
        **first_placements(placements),
    }


def first_placements(placements: Sequence[PlacementStatus]) -> dict[str, Any]:
    """Return a status's fields for where replicas sit: as many as it has room for, and how many more there are."""
    shown = tuple(placements[:_MOST])
    return {"placement": shown, "remaining_placements": len(placements) - len(shown)}


def placed_finding(progress: PoolProgress, member: Member, placements: Sequence[PlacementStatus]) -> Finding:
    """Return the condition Placed: whether every declared replica of a model or an ensemble is placed,
    and if not why.
    """
    kind, key, name = ConditionType.PLACED, progress.plan.pool, member.name
    if progress.pool.spec.suspend:
        return Finding(kind, False, Reason.SUSPENDED, f"pool {key} is suspended; set spec.suspend to false")
    unplaced = progress.unplaced_of(name)
    if unplaced:
        reason = Reason(unplaced[0].reason)
        done, desired = len(placements), len(placements) + len(unplaced)
        loss = progress.lost_to.get(name)
        lost = loss_clause(loss, progress.state.priority(progress.members.models_of(name))) if loss is not None else ""
        message = f"{done} of {desired} replicas are placed: {lost}{progress.reason_of(unplaced[0])}"
        partly = done and reason is not Reason.PENDING
        return Finding(kind, False, Reason.PARTIALLY_PLACED if partly else reason, message)
    if not placements:
        return Finding(kind, False, Reason.SCALED_TO_ZERO, f"{_fewest(member)} is 0, so it has no replica")
    return Finding(kind, True, Reason.PLACED, listed(map(_where, placements)) + _misplaced(progress, name))


def _misplaced(progress: PoolProgress, name: str) -> str:
    """Return which servers have a replica that may not be there, as a further clause; empty if none has."""
    models = progress.members.models_of(name)
    servers = [
        server.name
        for server in progress.servers_with(name)
        if any(one.misplaced and one.model in models for one in server.placements)
    ]
    if not servers:
        return ""
    return (
        f"; on {listed(servers, separator=', ')} it stays although nodeSelector, gpuType, topologySpread or "
        "antiAffinity do not allow it there: no other node has a free slot for it. Free one, or add a node"
    )


def _fewest(member: Member) -> str:
    """Return the field that says how many replicas there are at least."""
    return "minReplicas" if member.spec.replicas is None else "spec.replicas"


def _where(placement: PlacementStatus) -> str:
    if not placement.gpus:
        return f"{placement.server} on node {placement.node}, CPU"
    return f"{placement.server} on node {placement.node}, {device_names(placement.gpus)}"
