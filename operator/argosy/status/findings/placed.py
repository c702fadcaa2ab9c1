"""The condition Placed, and a replica's place as a status shows it."""

from collections.abc import Sequence
from typing import Any

from argosy.api import ConditionType, Ensemble, InferenceModel, Reason
from argosy.api.status import PlacementStatus
from argosy.planning.amounts import listed
from argosy.planning.plan import Placement, ServerPlan
from argosy.status.conditions import Finding
from argosy.status.progress import PoolProgress

Member = InferenceModel | Ensemble
_PLACES = 100
"""How many replicas' places a status shows."""


def placement_on(server: ServerPlan, model: str) -> Placement:
    """Return the model's placement on a server that has it."""
    return next(placement for placement in server.placements if placement.model == model)


def place(server: ServerPlan, version: int, gpus: Sequence[int], instances: int) -> PlacementStatus:
    """Return a replica's place."""
    return PlacementStatus(server=server.name, node=server.node, version=version, gpus=tuple(gpus), instances=instances)


def first_places(places: Sequence[PlacementStatus]) -> dict[str, Any]:
    """Return a status's fields for where replicas sit: as many as it has room for, and how many more there are."""
    shown = tuple(places[:_PLACES])
    return {"placement": shown, "remaining_placements": len(places) - len(shown)}


def placed_finding(progress: PoolProgress, member: Member, places: Sequence[PlacementStatus]) -> Finding:
    """Return whether every replica of a model or an ensemble, as it is declared, has a place, and if not why."""
    kind, key, name = ConditionType.PLACED, progress.plan.pool, member.name
    if progress.pool.spec.suspend:
        return Finding(kind, False, Reason.SUSPENDED, f"pool {key} is suspended; set spec.suspend to false")
    unplaced = progress.unplaced_of(name)
    if unplaced:
        reason = Reason(unplaced[0].reason)
        done, wanted = len(places), len(places) + len(unplaced)
        message = f"{done} of {wanted} replicas are placed: {unplaced[0].message}"
        partly = done and reason is not Reason.PENDING
        return Finding(kind, False, Reason.PARTIALLY_PLACED if partly else reason, message)
    if not places:
        return Finding(kind, False, Reason.SCALED_TO_ZERO, f"{_fewest(member)} is 0, so it has no replica")
    return Finding(kind, True, Reason.PLACED, listed(map(_where, places)))


def _fewest(member: Member) -> str:
    """The field that says how many replicas there are at least."""
    return "minReplicas" if member.spec.replicas is None else "spec.replicas"


def _where(place: PlacementStatus) -> str:
    if not place.gpus:
        return f"{place.server} on node {place.node}, CPU"
    noun = "GPU" if len(place.gpus) == 1 else "GPUs"
    return f"{place.server} on node {place.node}, {noun} {', '.join(map(str, place.gpus))}"
