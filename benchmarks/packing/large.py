"""What a large fleet of every kind of model costs: a plan, the same without a quarter of the GPUs, one changed model.

CPU seconds of this process. The number of models is part of each name.
"""

import resource
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.packing.bounds import lower_bound
from benchmarks.packing.fleets.every_kind import every_kind
from benchmarks.packing.fleets.families import GIB
from benchmarks.packing.fleets.fleet import Fleet, Model
from benchmarks.packing.placing import faults
from benchmarks.packing.planner import Timed, plan_of_fleet, reconciled, resources_of, snapshot_of, timed
from benchmarks.packing.rounds import Rounds, settled, with_resource

from argosy.planning.facts import PoolFacts
from argosy.planning.packing.priorities import pack_by_priority
from argosy.snapshot import FleetSnapshot

_KIB_PER_MIB = 1024
_SHORT = 0.75
"""The share of the GPUs that a plan takes which are there in a shortage."""
_CHANGES = 3
"""Changes of one model, of which the cheapest counts: other load of the machine disturbed it least."""


def measured(models: int, seed: int) -> dict[str, float | None]:
    """Return all numbers by name. Raises ValueError where a plan breaks a rule."""
    label = "10k" if models == 10_000 else str(models)
    fleet = every_kind(models, seed)
    snapshot = snapshot_of(fleet)
    outcome = reconciled(snapshot)
    full = _checked(fleet, timed(outcome.facts))
    plan = plan_of_fleet(full.plan, full.facts)
    bound = lower_bound(fleet)
    figures = {
        f"gpus_{label}": plan.gpus,
        f"bound_{label}": bound,
        f"over_bound_{label}": plan.gpus / bound if not plan.missing else None,
        f"unplaced_{label}": plan.missing,
        f"plan_{label}_cpu_s": full.cpu_s,
        f"plan_{label}_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB,
    }
    short = _checked(fleet, timed(_short(outcome.facts, int(_SHORT * plan.gpus))))
    return {
        **figures,
        f"plan_{label}_short_cpu_s": short.cpu_s,
        f"plan_{label}_unchanged_cpu_s": timed(full.running()).cpu_s,
        **_of_one_change(full, fleet, settled(snapshot, outcome), seed),
    }


def _of_one_change(full: Timed, fleet: Fleet, snapshot: FleetSnapshot, seed: int) -> dict[str, float]:
    """Return what one changed model costs: in the planner, and in a whole round of a fleet that runs."""
    changes = [_smaller(fleet, seed + at) for at in range(_CHANGES)]
    running = full.running()
    last = pack_by_priority(running)
    in_planner = [timed(_with_memory(running, model), last).cpu_s for model in changes]
    resources = [resources_of(replace(fleet, models=(model,), ensembles=(), pools=()))[0] for model in changes]
    unchanged, in_round = Rounds().of_changes(snapshot, (with_resource(snapshot, changed) for changed in resources))
    return {
        "change_one_cpu_ms": 1000 * min(in_planner),
        "round_one_change_cpu_ms": 1000 * min(in_round),
        "round_unchanged_cpu_ms": 1000 * unchanged,
    }


def _checked(fleet: Fleet, result: Timed) -> Timed:
    broken = faults(fleet, plan_of_fleet(result.plan, result.facts))
    if broken:
        raise ValueError(f"{fleet.name}: {len(broken)} rules are broken, such as: {broken[0]}")
    return result


def _short(facts: Sequence[PoolFacts], gpus: int) -> tuple[PoolFacts, ...]:
    """Return the facts with about so many GPUs, of every pool the same share of its nodes."""
    there = sum(len(node.gpus) for pool in facts for node in pool.nodes)
    share = gpus / there
    return tuple(replace(pool, nodes=pool.nodes[: max(1, int(len(pool.nodes) * share))]) for pool in facts)


def _smaller(fleet: Fleet, seed: int) -> Model:
    """Return a model of the fleet that shares GPUs and takes a little less of one from now on."""
    able = [model for model in fleet.models if not model.gpus and model.mib > 2 * GIB]
    model = able[seed * 7919 % len(able)]
    return replace(model, mib=model.mib - GIB // 4)


def _with_memory(facts: Sequence[PoolFacts], model: Model) -> tuple[PoolFacts, ...]:
    """Return the facts in which a model has this memory."""
    return tuple(
        replace(
            pool,
            groups=tuple(
                replace(
                    group,
                    demands=tuple(
                        replace(demand, footprint=replace(demand.footprint, memory=model.mib << 20))
                        if demand.model == model.name
                        else demand
                        for demand in group.demands
                    ),
                )
                if any(demand.model == model.name for demand in group.demands)
                else group
                for group in pool.groups
            ),
        )
        if str(pool.pool).endswith(f"/{model.pool}")
        else pool
        for pool in facts
    )
