"""Whole rounds of a fleet that runs: every server answers, and every model that it is to have is ready."""

import time
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.packing.planner import NOW

from argosy.api.documents import Resource
from argosy.planning.facts import ServerReport
from argosy.reconcile import RoundOutcome, reconcile
from argosy.render.repositories import RenderedServer
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract import LoadedModel, LoadState

_SETTLING = 3
"""Rounds after the first one until a new fleet is loaded and routed."""


def settled(snapshot: FleetSnapshot, outcome: RoundOutcome) -> FleetSnapshot:
    """Return the snapshot of a fleet once it runs, after its first round. Raises RuntimeError where it does not."""
    snapshot = _observed(outcome.after(snapshot), outcome)
    for _ in range(_SETTLING):
        outcome = reconcile(snapshot, NOW)
        snapshot = _observed(outcome.after(snapshot), outcome)
    lacking = [name for pool in snapshot.pools.values() for name in _lacking(pool.reports)]
    if lacking:
        raise RuntimeError(f"{len(lacking)} servers are not ready, such as {lacking[0]}")
    return snapshot


def round_cpu_s(snapshot: FleetSnapshot) -> float:
    """Return the CPU seconds of one round."""
    begun = time.process_time()
    reconcile(snapshot, NOW)
    return time.process_time() - begun


def with_resource(snapshot: FleetSnapshot, changed: Resource) -> FleetSnapshot:
    """Return the snapshot in which a resource is as given."""
    return replace(
        snapshot,
        resources=tuple(changed if one.identity == changed.identity else one for one in snapshot.resources),
    )


def _observed(snapshot: FleetSnapshot, outcome: RoundOutcome) -> FleetSnapshot:
    """Return the snapshot with what servers report once they have loaded all that they are to have."""
    pools = {
        key: replace(
            snapshot.pool(key),
            reports=tuple(_report(step) for step in steps),
            repositories=tuple(step.repository for step in steps),
            served=tuple(step.repository for step in steps),
        )
        for key, steps in outcome.steps.items()
    }
    return replace(snapshot, pools=pools)


def _report(step: RenderedServer) -> ServerReport:
    return ServerReport(
        step.plan.name,
        ready=True,
        models=tuple(_models(step)),
        url=f"http://{step.plan.name}",
        settled=True,
        takes_requests=True,
        routes=step.routes,
        grpc_address=f"{step.plan.name}:8001",
    )


def _models(step: RenderedServer) -> Iterator[LoadedModel]:
    for model in step.repository.models:
        yield from (LoadedModel(model.declared_name, version, LoadState.READY) for version in model.versions)


def _lacking(reports: tuple[ServerReport, ...]) -> list[str]:
    return [report.name for report in reports if not report.models or not report.routes]
