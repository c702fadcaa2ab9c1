"""A plan as it is once every engine that models ask for is built: where nothing is built, nothing waits for it."""

from dataclasses import replace
from datetime import datetime

from argosy.planning.builds.observed import JobState, ObservedBuild
from argosy.planning.builds.plan import PlannedBuild
from argosy.reconcile import Outcome, reconcile
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract.builds import BuildReport, BuildState

TO_BE_BUILT = "file:/engine-that-is-to-be-built"
"""Where the engines are said to be."""


def foreseen(snapshot: FleetSnapshot, now: datetime) -> tuple[Outcome, tuple[PlannedBuild, ...]]:
    """Return what comes of a snapshot once its engines are built, and the builds that this takes."""
    first = reconcile(snapshot, now)
    builds = {key: found for key, found in first.builds.items() if any(not each.is_over for each in found)}
    if not builds:
        return first, ()
    pools = {
        key: replace(snapshot.pool(key), builds={each.name: _built(each) for each in found})
        for key, found in builds.items()
    }
    every = tuple(each for found in builds.values() for each in found)
    return reconcile(replace(snapshot, pools={**snapshot.pools, **pools}), now), every


def _built(build: PlannedBuild) -> ObservedBuild:
    report = BuildReport(BuildState.READY, percent=100, key="0" * 32, uri=TO_BE_BUILT)
    return ObservedBuild(build.name, report, JobState.COMPLETE)
