"""The plan that holds in the end: once every requested engine is built, and GPUs have changed pools.

Commands that build nothing, and show no steps, plan with it.
"""

from dataclasses import replace
from datetime import datetime

from argosy.api.values.identity import PoolKey
from argosy.planning.builds.build import JobState, ObservedBuild, ScheduledBuild
from argosy.planning.facts import CurrentServer
from argosy.planning.plan import FleetPlan, PoolPlan
from argosy.reconcile import RoundOutcome, reconcile
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract.builds import BuildReport, BuildState

TO_BE_BUILT = "file:/engine-that-is-to-be-built"
"""The URI of an engine that is not built yet."""
_MOST_ROUNDS = 8
"""Rounds in which GPUs change pools. One is enough where a pool claims from another one."""


def final_plan(snapshot: FleetSnapshot, now: datetime) -> tuple[RoundOutcome, tuple[ScheduledBuild, ...]]:
    """Return the outcome of a snapshot once each pool has the GPUs that it claims from others, and all builds."""
    outcome, builds = built_plan(snapshot, now)
    before = dict[PoolKey, tuple[CurrentServer, ...]]()
    for _ in range(_MOST_ROUNDS):
        current = {plan.pool: plan.current for plan in outcome.plan.pools}
        if current == before or not any(plan.claims for plan in outcome.plan.pools):
            break
        before = current
        pools = {key: replace(snapshot.pool(key), servers=servers) for key, servers in current.items()}
        after, _ = built_plan(replace(snapshot, pools={**snapshot.pools, **pools}), now)
        outcome = replace(after, plan=_with_losses(after.plan, outcome.plan))
    return outcome, builds


def _with_losses(plan: FleetPlan, earlier: FleetPlan) -> FleetPlan:
    """Return the plan with the places that an earlier round took from what still lacks one."""
    former = {one.pool: one.lost for one in earlier.pools}

    def with_former(pool: PoolPlan) -> PoolPlan:
        lacking = {one.group for one in pool.unplaced}
        lost = (one for one in former.get(pool.pool, ()) if one.group in lacking and one not in pool.lost)
        return replace(pool, lost=(*pool.lost, *lost))

    return replace(plan, pools=tuple(with_former(pool) for pool in plan.pools))


def built_plan(snapshot: FleetSnapshot, now: datetime) -> tuple[RoundOutcome, tuple[ScheduledBuild, ...]]:
    """Return the outcome of a snapshot once its engines are built, and the builds that this takes."""
    first = reconcile(snapshot, now)
    builds = {key: planned for key, planned in first.builds.items() if any(not build.is_over for build in planned)}
    if not builds:
        return first, ()
    pools = {
        key: replace(snapshot.pool(key), builds={build.name: _built(build) for build in planned})
        for key, planned in builds.items()
    }
    all_builds = tuple(build for planned in builds.values() for build in planned)
    return reconcile(replace(snapshot, pools={**snapshot.pools, **pools}), now), all_builds


def _built(build: ScheduledBuild) -> ObservedBuild:
    report = BuildReport(BuildState.READY, percent=100, key="0" * 32, uri=TO_BE_BUILT)
    return ObservedBuild(build.name, report, JobState.COMPLETE)
