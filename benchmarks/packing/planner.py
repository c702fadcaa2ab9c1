"""The operator's planner on a fleet, by the entry that `argosy plan` uses."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from benchmarks.packing.fleets.fleet import Fleet
from benchmarks.packing.fleets.manifests import manifests, nodes
from benchmarks.packing.placing import Plan, Server

from argosy.api.documents import Resource, parse_body
from argosy.cli.planning.built_plan import built_plan
from argosy.cli.planning.plan_document import plan_document
from argosy.planning.facts import PoolFacts
from argosy.planning.nodes.parse import node_of
from argosy.planning.packing.priorities import RankedPlan, pack_by_priority
from argosy.planning.plan import FleetPlan
from argosy.reconcile import RoundOutcome
from argosy.snapshot import FleetSnapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Timed:
    """A plan with the CPU seconds that it took."""

    plan: FleetPlan
    facts: tuple[PoolFacts, ...]
    cpu_s: float

    def running(self) -> tuple[PoolFacts, ...]:
        """Return the facts once the plan is carried out."""
        plans = {pool.pool: pool for pool in self.plan.pools}
        return tuple(replace(facts, current=plans[facts.pool].current) for facts in self.facts)


def planned(fleet: Fleet) -> Plan:
    """Return the plan of a fleet, as `argosy plan -o json` writes it."""
    outcome = reconciled(snapshot_of(fleet))
    return plan_of_document(plan_document(outcome.plan, outcome.facts))


def reconciled(snapshot: FleetSnapshot) -> RoundOutcome:
    """Return the outcome of a whole round."""
    return built_plan(snapshot, NOW)[0]


def timed(facts: Sequence[PoolFacts], last: RankedPlan | None = None) -> Timed:
    """Return the plan of these facts, planned once and timed; `last`: the plan of the round before."""
    begun = time.process_time()
    plan = pack_by_priority(facts, last=last).plan
    return Timed(plan, tuple(facts), time.process_time() - begun)


def snapshot_of(fleet: Fleet) -> FleetSnapshot:
    """Return a snapshot of a fleet before anything runs. Raises ValueError where a manifest is invalid."""
    return FleetSnapshot(resources_of(fleet), tuple(node_of(body) for body in nodes(fleet)))


def resources_of(fleet: Fleet) -> tuple[Resource, ...]:
    """Return the resources of a fleet. Raises ValueError where a manifest is invalid."""
    parsed = [parse_body(body) for body in manifests(fleet)]
    problems = [str(problem) for _, errors in parsed for problem in errors]
    if problems:
        raise ValueError("\n".join(problems))
    return tuple(resource for resource, _ in parsed if resource is not None)


def plan_of_fleet(plan: FleetPlan, facts: Sequence[PoolFacts]) -> Plan:
    """Return a plan of the operator's as the checker reads it."""
    return plan_of_document(plan_document(plan, facts))


def plan_of_document(document: Document) -> Plan:
    """Return the plan of a document, as `argosy plan -o json` writes it."""
    servers = (
        Server(
            pool["name"].rpartition("/")[2],
            server["node"],
            frozenset(server["gpus"]),
            {placement["model"]: tuple(placement["gpus"]) for placement in server["models"]},
        )
        for pool in document["pools"]
        for server in pool["servers"]
    )
    return Plan(tuple(servers), Counter(unplaced["group"] for unplaced in document["unplaced"]))
