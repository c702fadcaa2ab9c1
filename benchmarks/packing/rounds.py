"""Whole rounds of a fleet that runs: every server answers, and every model that it is to have is ready."""

import gc
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from benchmarks.packing.planner import NOW

from argosy.api.documents import Resource
from argosy.api.values.reuse import RoundCache
from argosy.cli.cluster.operator import GC_THRESHOLDS
from argosy.planning.facts import ServerReport
from argosy.planning.packing.priorities import RankedPlan
from argosy.reconcile import RoundOutcome, conclude, decide, reconcile
from argosy.render.repositories import RenderedServer
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract import LoadedModel, LoadState

_SETTLING = 3
"""Rounds after the first one until a new fleet is loaded and routed."""
_WARM_UP = 2
"""Rounds without a change until everything is as the round before had it."""


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


class Rounds:
    """Rounds of one fleet after each other, each with what the operator keeps of the one before."""

    def __init__(self) -> None:
        """Begin with nothing, as an operator that was just started; the collector runs as often as in the operator."""
        gc.set_threshold(*GC_THRESHOLDS)
        self._cache = RoundCache()
        self._packed: RankedPlan | None = None

    def cpu_s(self, snapshot: FleetSnapshot) -> float:
        """Return the CPU seconds of the next round."""
        begun = time.process_time()
        decided = decide(snapshot, NOW, last_packed=self._packed, cache=self._cache)
        conclude(decided, self._cache)
        self._packed = decided.packed
        return time.process_time() - begun

    def of_changes(self, snapshot: FleetSnapshot, changes: Iterable[FleetSnapshot]) -> tuple[float, list[float]]:
        """Return the CPU seconds of a round in which nothing changed, and of those in which the snapshot changed to
        each of these.
        """
        for _ in range(_WARM_UP):
            self.cpu_s(snapshot)
        unchanged, changed = self.cpu_s(snapshot), list[float]()
        for after in changes:
            changed.append(self.cpu_s(after))
            self.cpu_s(snapshot)
        return unchanged, changed


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
