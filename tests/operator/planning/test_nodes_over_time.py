"""Nodes as Kubernetes reports them: which are up, which take new servers, and what becomes of a GPU that is lost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.operator.planning.declared import facts_of, gpu_node, model, pool

from argosy.api import ServingPoolStatus
from argosy.planning.facts import CurrentServer
from argosy.planning.nodes.selection import UNREADY_GRACE, next_readiness_change, with_readiness
from argosy.reconcile import reconcile
from argosy.snapshot import FleetSnapshot, PoolSnapshot

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_server_on_a_node_that_lost_a_gpu_asks_only_for_what_it_needs() -> None:
    """It had GPUs that it needed no longer; one of them is gone, and so it is restarted anyway."""
    had = CurrentServer("p-0", "a", (0, 1, 2, 3), {"m": (0,)})
    snapshot = FleetSnapshot((pool(), model("m")), (gpu_node("a", 3),), {"default/p": PoolSnapshot((had,))})
    outcome = reconcile(snapshot, NOON)
    assert [(server.name, server.gpus) for server in outcome.plan.pools[0].servers] == [("p-0", (0,))]
    (gpus,) = [status.gpus for status in outcome.statuses.values() if isinstance(status, ServingPoolStatus)]
    assert gpus is not None
    assert (gpus.total, gpus.used, gpus.free) == (3, 1, 2)


def test_a_model_on_a_gpu_that_is_gone_gets_another() -> None:
    had = CurrentServer("p-0", "a", (2, 3), {"m": (3,)})
    snapshot = FleetSnapshot((pool(), model("m")), (gpu_node("a", 3),), {"default/p": PoolSnapshot((had,))})
    outcome = reconcile(snapshot, NOON)
    ((server,),) = (pool.servers for pool in outcome.plan.pools)
    assert set(server.gpus) <= {0, 1, 2}
    assert [placement.gpus for placement in server.placements] == [server.gpus]


@pytest.mark.parametrize(
    ("since", "lost"), [(UNREADY_GRACE - timedelta(seconds=1), False), (UNREADY_GRACE, True), (None, True)]
)
def test_a_node_that_is_not_ready_is_lost_after_the_grace(since: timedelta | None, lost: bool) -> None:
    node = gpu_node("a", ready=False, unready_since=None if since is None else NOON - since)
    (result,) = with_readiness([node], NOON)
    assert (result.ready, result.schedulable, result.stale, result.lost) == (True, False, True, lost)


def test_the_first_grace_to_end_is_the_next_change() -> None:
    nodes = [
        gpu_node("a"),
        gpu_node("b", ready=False, unready_since=NOON - timedelta(seconds=10)),
        gpu_node("c", ready=False, unready_since=NOON - timedelta(seconds=20)),
        gpu_node("d", ready=False, unready_since=NOON - timedelta(hours=1)),
    ]
    assert next_readiness_change(nodes, NOON) == NOON - timedelta(seconds=20) + UNREADY_GRACE
    assert next_readiness_change(nodes[:1], NOON) is None


@pytest.mark.parametrize(
    ("state", "without_server", "with_server"),
    [
        ({"schedulable": False}, [], [False]),
        ({"taints": ({"key": "gpu", "effect": "NoSchedule"},)}, [], [False]),
        ({"taints": ({"key": "gpu", "effect": "NoExecute"},)}, [], []),
        ({"taints": ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},)}, [True], [True]),
        ({"taints": ({"key": "gpu", "effect": "PreferNoSchedule"},)}, [True], [True]),
    ],
)
def test_a_node_that_keeps_new_pods_away_stays_for_what_runs_there(
    state: dict[str, Any], without_server: list[bool], with_server: list[bool]
) -> None:
    node = gpu_node("a", **state)
    (fresh,) = facts_of([pool()], [node])
    (running,) = facts_of([pool()], [node], {"default/p": [CurrentServer("p-0", "a", (0,), {"m": (0,)})]})
    assert [node.schedulable for node in fresh.nodes] == without_server
    assert [node.schedulable for node in running.nodes] == with_server
