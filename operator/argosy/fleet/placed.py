"""The condition Placed, and a replica's place as a status shows it."""

from collections.abc import Collection, Sequence

from argosy.api import ConditionType, Reason
from argosy.api.status import PlacementStatus
from argosy.fleet.plan import Placement, PoolPlan, ServerPlan
from argosy.fleet.transitions import Finding


def servers_with(plan: PoolPlan, models: Collection[str]) -> tuple[ServerPlan, ...]:
    """The planned servers that have all of these models."""
    wanted = set(models)
    return tuple(s for s in plan.servers if wanted and wanted <= {p.model for p in s.placements})


def placement_on(server: ServerPlan, model: str) -> Placement:
    """The model's placement on a server that has it."""
    return next(placement for placement in server.placements if placement.model == model)


def place(server: ServerPlan, version: int, gpus: Sequence[int], instances: int) -> PlacementStatus:
    """A replica's place."""
    return PlacementStatus(server=server.name, node=server.node, version=version, gpus=tuple(gpus), instances=instances)


def placed_finding(
    plan: PoolPlan, suspended: bool, models: Collection[str], places: Sequence[PlacementStatus]
) -> Finding:
    """Whether every replica of what these models make up has a place, and if not why."""
    kind = ConditionType.PLACED
    if suspended:
        return Finding(kind, False, Reason.SUSPENDED, f"pool {plan.pool} is suspended; set spec.suspend to false")
    unplaced = [each for each in plan.unplaced if set(models) & set(each.models)]
    if unplaced:
        reason = Reason(unplaced[0].reason)
        done, wanted = len(places), len(places) + len(unplaced)
        message = f"{done} of {wanted} replicas are placed: {unplaced[0].message}"
        return Finding(kind, False, reason if not done else Reason.PARTIALLY_PLACED, message)
    if not places:
        return Finding(kind, False, Reason.SCALED_TO_ZERO, "minReplicas is 0, so it has no replica")
    return Finding(kind, True, Reason.PLACED, "; ".join(map(_where, places)))


def _where(place: PlacementStatus) -> str:
    if not place.gpus:
        return f"{place.server} on node {place.node}, CPU"
    noun = "GPU" if len(place.gpus) == 1 else "GPUs"
    return f"{place.server} on node {place.node}, {noun} {', '.join(map(str, place.gpus))}"
