"""The plan that holds once every requested engine is built: commands that build nothing plan with it."""

from dataclasses import replace
from datetime import datetime

from argosy.planning.builds.build import JobState, ObservedBuild, ScheduledBuild
from argosy.reconcile import RoundOutcome, reconcile
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract.builds import BuildReport, BuildState

TO_BE_BUILT = "file:/engine-that-is-to-be-built"
"""The URI of an engine that is not built yet."""


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
