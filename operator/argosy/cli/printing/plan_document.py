"""A plan as a document of plain values, for JSON and YAML."""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.planning.builds.plan import PlannedBuild
from argosy.planning.facts import PoolFacts
from argosy.planning.packing.capacity import gpus_of
from argosy.planning.packing.lower_bound import fewest_gpus
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan

Document = dict[str, Any]


def plan_document(
    plan: FleetPlan,
    facts: Sequence[PoolFacts],
    builds: Sequence[PlannedBuild] = (),
    advice: Mapping[str, str] | None = None,
) -> Document:
    """Return the whole plan: totals, then pools, then what fits nowhere, the engines that it takes, advice by resource.
    Memory is in bytes, compute in thousandths of a GPU.
    """
    total, withheld = gpus_total(facts), gpus_withheld(facts)
    return {
        "gpusUsed": plan.gpus_used,
        "gpusFree": total - plan.gpus_used - withheld,
        "gpusWithheld": withheld,
        "gpusTotal": total,
        "gpusOnePerModel": plan.gpus_one_per_model,
        "lowerBound": fewest_gpus(plan, facts),
        "pools": [_pool(pool) for pool in plan.pools],
        "unplaced": [
            {
                "pool": str(pool.pool),
                "group": each.group,
                "models": list(each.models),
                "reason": str(each.reason),
                "message": each.message,
            }
            for pool in plan.pools
            for each in pool.unplaced
        ],
        **({"builds": [_build(each) for each in builds]} if builds else {}),
        **({"advice": [{"resource": name, "message": said} for name, said in advice.items()]} if advice else {}),
    }


def _build(build: PlannedBuild) -> Document:
    request = build.request
    return {
        "models": list(build.owners),
        "builder": request.builder,
        "precision": request.precision,
        "architecture": request.architecture,
        "gpus": request.gpus,
    }


def gpus_total(facts: Sequence[PoolFacts]) -> int:
    """Return GPUs of all pools' nodes; one that several pools could take counts once."""
    return len({(node.name, gpu.index) for each in facts for node in each.nodes for gpu in gpus_of(node)})


def gpus_withheld(facts: Sequence[PoolFacts]) -> int:
    """Return of these the GPUs that none of the pools may plan with."""
    return len({(n.name, gpu.index) for each in facts for n in each.nodes for gpu in gpus_of(n) if gpu.withheld_by})


def _pool(pool: PoolPlan) -> Document:
    return {
        "name": str(pool.pool),
        "gpusUsed": pool.gpus_used,
        "gpusTotal": pool.gpus_total,
        "gpusOnePerModel": pool.gpus_one_per_model,
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
        "compute": placement.compute,
        "whole": placement.whole,
    }
