"""No status outgrows what an object may hold, however large the fleet and however much there is to say."""

import json
from datetime import UTC, datetime

import pytest
from tests.operator.planning.declared import ensemble, model, pool

from argosy.api import EnsembleStatus, InferenceModelStatus, Resource, ServingPoolStatus
from argosy.api.status import Status
from argosy.api.values.identity import PoolKey
from argosy.planning.demand.members import Members
from argosy.planning.facts import ServerReport
from argosy.planning.migration.bindings import PlannedBindings
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.pool_migration import PoolMigration
from argosy.planning.migration.state import PoolState
from argosy.planning.packing.priorities import RankedPlan
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan, Unplaced
from argosy.planning.validation.accept import Accepted
from argosy.round import DecidedRound
from argosy.snapshot import FleetSnapshot
from argosy.status.statuses import statuses
from argosy_agent.contract import LoadedModel, LoadState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

LIMIT = 256 * 1024
GPUS = 8000
LONG = "n" * 248
"""With a number behind it as long as a name may be."""
WORDS = "CUDA out of memory while the weights were copied; " * 200


def size(status: Status) -> int:
    """Return the bytes of the status as it is written."""
    return len(json.dumps(status.model_dump(mode="json", by_alias=True, exclude_none=True)).encode())


def fleet(servers: int, models: int, replicas: int) -> tuple[list[Resource], FleetPlan]:
    """Return all GPUs shared by so many servers, each with some of the models; every model has so many replicas."""
    resources: list[Resource] = [pool("p"), *(model(f"m{n}", minReplicas=replicas) for n in range(models))]
    item, per_server = GPUS // servers, models * replicas // servers
    plans = []
    for number in range(servers):
        gpus = tuple(range(item))
        first = number * per_server
        names = [f"m{(first + k) % models}" for k in range(per_server)]
        placements = tuple(
            Placement(name, 1, name, (gpus[k % item],), 1, 1 << 30, 100) for k, name in enumerate(dict.fromkeys(names))
        )
        plans.append(ServerPlan(f"{LONG}-{number}", f"{LONG}-{number}", gpus, placements))
    lacking = tuple(Unplaced(f"{LONG}-{n}", (f"{LONG}-{n}",), "NoRoom", WORDS) for n in range(5000))
    reserved = {f"Pod research/{LONG}-{n}": 1 for n in range(2000)}
    plan = PoolPlan(PoolKey("default/p"), tuple(plans), lacking, GPUS + 2000, GPUS, 4 * GPUS, reserved)
    return resources, FleetPlan((plan,))


def written(resources: list[Resource], plan: FleetPlan, *, up: bool) -> dict[str, Status]:
    """Return every status, where all servers serve, or none does and each has much to report."""
    loaded = LoadState.READY if up else LoadState.UNAVAILABLE
    reports = [
        ServerReport(
            server.name,
            ready=up or number % 2 == 0,
            models=tuple(LoadedModel(p.model, 1, loaded, "" if up else WORDS) for p in server.placements),
            url=f"http://{server.name}:8000",
            error="" if up else WORDS,
        )
        for number, server in enumerate(plan.pools[0].servers)
    ]
    (planned,) = plan.pools
    members = Members.of(PoolKey("default/p"), resources)
    state = PoolState(planned, members, PlannedBindings.of(planned, members), Observed.of(reports), {}, {})
    return statuses(_round(resources, state))


def _round(resources: list[Resource], state: PoolState) -> DecidedRound:
    return DecidedRound(
        FleetSnapshot(tuple(resources), ()),
        NOON,
        Accepted(tuple(resources), (), (), frozenset()),
        RankedPlan(FleetPlan((state.plan,)), ()),
        {state.plan.pool: PoolMigration(state)},
    )


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize(("servers", "models", "replicas"), [(1000, 500, 20), (8000, 40, 200), (8000, 1, 8000)])
def test_no_status_of_8000_gpus_is_above_256_kib(servers: int, models: int, replicas: int, up: bool) -> None:
    resources, plan = fleet(servers, models, replicas)
    result = written(resources, plan, up=up)
    assert len(result) == len(resources)
    assert max(map(size, result.values())) < LIMIT
    status = result["ServingPool default/p"]
    assert isinstance(status, ServingPoolStatus)
    assert len(status.servers) + status.remaining_servers == status.replicas == servers
    assert len(status.unplaced) + status.remaining_unplaced == 5000
    assert status.gpus is not None
    assert (status.gpus.total, status.gpus.withheld, len(status.gpus.withheld_by)) == (GPUS + 2000, 2000, 10)


def test_the_servers_that_do_not_answer_are_among_those_that_are_listed() -> None:
    resources, plan = fleet(1000, 500, 20)
    result = written(resources, plan, up=False)["ServingPool default/p"]
    assert isinstance(result, ServingPoolStatus)
    assert [server.ready for server in result.servers] == [False] * 100
    numbers = [int(server.name.removeprefix(f"{LONG}-")) for server in result.servers]
    assert numbers == sorted(numbers)


def test_a_model_with_10000_replicas_lists_a_hundred_and_counts_the_rest() -> None:
    one = model("m", minReplicas=10_000)
    servers = tuple(
        ServerPlan(f"p-{n}", f"{LONG}-{n // 8}", (n % 8,), (Placement("m", 1, "m", (n % 8,), 1, 1 << 30, 100),))
        for n in range(10_000)
    )
    plan = FleetPlan((PoolPlan(PoolKey("default/p"), servers, (), 10_000, 10_000, 10_000),))
    result = written([pool("p"), one, ensemble("e", "m")], plan, up=True)
    for identity in ("InferenceModel default/m", "Ensemble default/e"):
        status = result[identity]
        assert isinstance(status, InferenceModelStatus | EnsembleStatus)
        assert size(status) < LIMIT
        assert (len(status.placement), status.remaining_placements, status.replicas) == (100, 9900, 10_000)
        placed = next(condition for condition in status.conditions if str(condition.type) == "Placed")
        assert placed.message.endswith("; and 9995 more")
