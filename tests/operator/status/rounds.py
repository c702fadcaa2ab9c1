"""What is declared, and what servers report; and what statuses say of it."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.operator.planning import declared
from tests.operator.planning.declared import facts_of

from argosy.api import Condition, ConditionType, Ensemble, InferenceModel, Problem, Resource
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus, Status
from argosy.planning.demand.members import Members
from argosy.planning.explanation.remedies.find import OF_A_ROUND, find_remedies
from argosy.planning.facts import Gpu, Node, ServerReport
from argosy.planning.migration.bindings import PlannedBindings
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.pool_migration import PoolMigration
from argosy.planning.migration.state import PoolState
from argosy.planning.packing.pools import pack_fleet
from argosy.planning.packing.priorities import RankedPlan
from argosy.planning.plan import PoolPlan
from argosy.planning.validation.accept import Accepted
from argosy.round import DecidedRound
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract import LoadedModel, LoadState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)
GIB = 1 << 30
NODES = (Node("a", (Gpu(0, 80 * GIB), Gpu(1, 80 * GIB))),)
READY, LOADING, FAILED = LoadState.READY, LoadState.LOADING, LoadState.UNAVAILABLE


def model(name: str = "m", version: int = 1, generation: int = 1, **spec: Any) -> InferenceModel:
    defaults = {"footprint": {"gpuMemory": "4Gi", "compute": "10%"}, "inputs": None, "outputs": None}
    return declared.model(name, version, metadata={"generation": generation}, **{**defaults, **spec})


def ensemble(name: str, *steps: dict[str, Any], **spec: Any) -> Ensemble:
    tensors = [{"name": "t", **declared.TENSOR}]
    ports = {"inputs": {"a": "t"}, "outputs": {"b": "t"}}
    defaults = {"inputs": tensors, "outputs": tensors, "steps": [{**step, **ports} for step in steps]}
    return declared.ensemble(name, **{**defaults, **spec})


def report(server: str, *models: LoadedModel, ready: bool = True) -> ServerReport:
    """Return a server's report; requests for all its models reach it."""
    routes = frozenset(model.model for model in models)
    return ServerReport(
        server, ready, models, f"http://{server}", grpc_address=f"{server}:8001", takes_requests=ready, routes=routes
    )


def loaded(name: str, version: int = 1, state: LoadState = READY, reason: str = "") -> LoadedModel:
    return LoadedModel(name, version, state, reason)


def decided_round(
    resources: Sequence[Resource],
    reports: Sequence[ServerReport] = (),
    previous: Mapping[str, Status] | None = None,
    problems: Sequence[Problem] = (),
    still: Collection[str] = (),
    now: datetime = NOON,
) -> DecidedRound:
    facts = facts_of(resources, NODES)
    plan = pack_fleet(facts)
    return DecidedRound(
        FleetSnapshot(tuple(resources), NODES, statuses=previous or {}),
        now,
        Accepted(tuple(resources), (), tuple(problems), frozenset(still)),
        RankedPlan(plan, tuple(facts)),
        {pool.pool: PoolMigration(state_of(pool, resources, reports)) for pool in plan.pools},
        remedies=find_remedies(facts, plan, OF_A_ROUND),
    )


def state_of(plan: PoolPlan, resources: Sequence[Resource], reports: Sequence[ServerReport]) -> PoolState:
    members = Members.of(plan.pool, resources)
    current = {item.name: item for item in plan.current}
    observed = Observed.of(reports if plan.pool == "default/p" else ())
    return PoolState(
        plan, members, PlannedBindings.of(plan, members), observed, current, {node.name: node for node in NODES}
    )


def of_model(result: Mapping[str, Status], name: str = "m") -> InferenceModelStatus:
    status = result[f"InferenceModel default/{name}"]
    assert isinstance(status, InferenceModelStatus)
    return status


def of_ensemble(result: Mapping[str, Status], name: str = "e") -> EnsembleStatus:
    status = result[f"Ensemble default/{name}"]
    assert isinstance(status, EnsembleStatus)
    return status


def of_pool(result: Mapping[str, Status]) -> ServingPoolStatus:
    status = result["ServingPool default/p"]
    assert isinstance(status, ServingPoolStatus)
    return status


def described(status: Status, kind: str) -> tuple[str, str]:
    condition = condition_of(status, kind)
    return condition.status.value, str(condition.reason)


def condition_of(status: Status, kind: str) -> Condition:
    condition = status.condition(ConditionType(kind))
    assert condition is not None
    return condition
