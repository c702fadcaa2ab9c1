"""A plan as a document of plain values, for JSON and YAML."""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.cli.planning.explanation.difference import difference_document
from argosy.cli.planning.explanation.preempted import preempted_document
from argosy.cli.planning.explanation.remedies import remedies_document
from argosy.planning.builds.build import ScheduledBuild
from argosy.planning.explanation.difference import Difference
from argosy.planning.explanation.remedies.find import Remedies
from argosy.planning.facts import Device, PoolFacts
from argosy.planning.nodes.holders import is_held
from argosy.planning.packing.capacity import gpus_of
from argosy.planning.packing.lower_bound import fewest_gpus, fewest_of_pool
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan

Document = dict[str, Any]


def plan_document(
    plan: FleetPlan,
    facts: Sequence[PoolFacts],
    builds: Sequence[ScheduledBuild] = (),
    advice: Mapping[str, str] | None = None,
    changes: Difference | None = None,
    remedies: Remedies | None = None,
) -> Document:
    """Return a plan with its totals, pools, unplaced groups with remedies, what lost its place to what, the engines
    to build first, advice by resource, and what changes of what runs.

    Memory is in bytes, compute in thousandths of a GPU.
    """
    total, withheld = gpus_total(facts), gpus_withheld(facts)
    by_pool = {of_pool.pool: of_pool for of_pool in facts}
    return {
        "gpusUsed": plan.gpus_used,
        "gpusFree": total - plan.gpus_used - withheld,
        "gpusWithheld": withheld,
        "gpusTotal": total,
        "gpusOnePerModel": plan.gpus_one_per_model,
        "lowerBound": fewest_gpus(plan, facts),
        "gap": plan.gpus_used - fewest_gpus(plan, facts),
        "pools": [_pool(pool, by_pool[pool.pool]) for pool in plan.pools],
        "unplaced": [
            {
                "pool": str(pool.pool),
                "group": unplaced.group,
                "models": list(unplaced.models),
                "reason": str(unplaced.reason),
                "message": unplaced.message,
                "remedies": remedies_document(remedies or {}, pool.pool, unplaced.group),
            }
            for pool in plan.pools
            for unplaced in pool.unplaced
        ],
        **({"preempted": preempted} if (preempted := preempted_document(plan)) else {}),
        **({"builds": [_build(build) for build in builds]} if builds else {}),
        **({"advice": [{"resource": name, "message": message} for name, message in advice.items()]} if advice else {}),
        **({"changes": difference_document(changes)} if changes is not None else {}),
    }


def _build(build: ScheduledBuild) -> Document:
    request = build.request
    return {
        "models": list(build.owners),
        "builder": request.builder,
        "precision": request.precision,
        "architecture": request.architecture,
        "gpus": request.gpus,
    }


def gpus_total(facts: Sequence[PoolFacts]) -> int:
    """Return the number of GPUs on all pools' nodes. A GPU that several pools could take counts once."""
    return len({(node.name, gpu.index) for pool in facts for node in pool.nodes for gpu in gpus_of(node)})


def gpus_withheld(facts: Sequence[PoolFacts]) -> int:
    """Return the number of those GPUs that no pool may plan with."""
    return len(_withheld(facts))


def gpus_unusable(facts: Sequence[PoolFacts]) -> int:
    """Return the number of those that nothing has, and nothing can have as they are."""
    return sum(not is_held(reason) for reason in _withheld(facts).values())


def _withheld(facts: Sequence[PoolFacts]) -> dict[Device, str]:
    gpus = ((node.name, gpu) for pool in facts for node in pool.nodes for gpu in gpus_of(node))
    return {(node, gpu.index): gpu.withheld_by for node, gpu in gpus if gpu.withheld_by}


def _pool(pool: PoolPlan, facts: PoolFacts) -> Document:
    bound = fewest_of_pool(pool, facts)
    return {
        "name": str(pool.pool),
        "gpusUsed": pool.gpus_used,
        "gpusTotal": pool.gpus_total,
        "gpusOnePerModel": pool.gpus_one_per_model,
        "lowerBound": bound,
        "gap": pool.gpus_used - bound,
        "servers": [_server(server) for server in pool.servers],
    }


def _server(server: ServerPlan) -> Document:
    return {
        "name": server.name,
        "node": server.node,
        "gpus": list(server.gpus),
        "models": [_model(placement) for placement in server.placements],
    }


def _model(placement: Placement) -> Document:
    return {
        "model": placement.model,
        "version": placement.version,
        "group": placement.group,
        "gpus": list(placement.gpus),
        "instances": placement.instances,
        "memory": placement.memory,
        **({"surge": placement.surge} if placement.surge else {}),
        "compute": placement.compute,
        "whole": placement.exclusive,
    }
