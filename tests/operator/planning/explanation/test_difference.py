"""The difference between what runs and a plan."""

from argosy.api.values.identity import PoolKey
from argosy.cli.planning.explanation.difference import difference_lines
from argosy.planning.explanation.difference import Location, difference
from argosy.planning.facts import CurrentServer, DraDevice, Gpu, Node
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan, Unplaced

POOL = PoolKey("n/p")


def server(name: str, node: str, **models: int) -> CurrentServer:
    gpus = tuple(sorted(set(models.values())))
    return CurrentServer(name, node, gpus, {model: (gpu,) for model, gpu in models.items()})


def plan(*servers: CurrentServer, unplaced: tuple[str, ...] = ()) -> FleetPlan:
    planned = tuple(
        ServerPlan(
            one.name,
            one.node,
            one.gpus,
            tuple(Placement(model, 1, model, gpus, 1, 0, 0) for model, gpus in one.placed.items()),
        )
        for one in servers
    )
    left = tuple(Unplaced(model, (model,), "NoFreeMemory", "") for model in unplaced)
    return FleetPlan((PoolPlan(POOL, planned, left, 8, sum(len(one.gpus) for one in planned), 0),))


def test_nothing_changes_where_the_plan_is_what_runs() -> None:
    running = (server("p-0", "a", x=0, y=1), server("p-1", "b", x=0))
    assert difference({POOL: running}, plan(*reversed(running)), ()).is_empty


def test_a_replica_moves_from_its_own_server_first() -> None:
    running = {POOL: (server("p-0", "a", x=0), server("p-1", "b", x=0))}
    changed = difference(running, plan(server("p-0", "a", x=1), server("p-2", "c", x=0)), ())
    assert [(one.before, one.after) for one in changed.moved] == [
        (Location("p-0", "a", (0,), "GPU 0"), Location("p-0", "a", (1,), "GPU 1")),
        (Location("p-1", "b", (0,), "GPU 0"), Location("p-2", "c", (0,), "GPU 0")),
    ]


def test_an_unplaced_replica_is_lost_and_the_rest_is_removed() -> None:
    running = {POOL: (server("p-0", "a", x=0, y=1), server("p-1", "b", x=0))}
    changed = difference(running, plan(server("p-2", "c", z=0), unplaced=("x",)), ())
    assert [one.model for one in changed.lost] == ["x"]
    assert [one.model for one in changed.removed] == ["x", "y"]
    assert [one.model for one in changed.placed] == ["z"]
    assert (changed.gpus_before, changed.gpus_after, changed.gpus_retained) == (3, 1, 0)


def test_a_pool_that_is_gone_ends() -> None:
    changed = difference({PoolKey("n/gone"): (server("gone-0", "a", x=0),)}, plan(), ())
    assert [one.model for one in changed.removed] == ["x"]


def test_partitions_have_their_profile_on_nodes_that_there_are() -> None:
    device = DraDevice("gpu.nvidia.com", "a", "gpu-0-mig-3", "mig.nvidia.com", "", "3g.40gb")
    node = Node("a", (Gpu(1_500_000_042, 40 << 30, device=device),))
    moved = difference(
        {POOL: (server("p-0", "a", x=1_500_000_042),)}, plan(server("p-1", "b", x=1_500_000_007)), (node,)
    )
    assert (
        "x moves from partition 1500000042 of 3g.40gb of node a (server p-0) to partition 1500000007 of node b"
        in (difference_lines(moved)[1])
    )
