"""Nodes as Kubernetes reports them: whose GPUs are free, which are up, which take new servers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.operator.fleet.declared import gpu_node, pool

from argosy.fleet.demand.pool_facts import fleet_facts
from argosy.fleet.facts import CurrentServer, Node
from argosy.fleet.nodes.readiness import GRACE, next_change, standing
from argosy.fleet.nodes.reservations import without

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def indexes(node: Node) -> list[int]:
    return [gpu.index for gpu in node.gpus]


def test_gpus_of_others_are_the_highest_that_nobody_of_ours_has() -> None:
    nodes = (gpu_node("a", 4), gpu_node("b", 4))
    first, second = without(nodes, {"a": 2}, taken={("b", 0)}, own={("a", 3)})
    assert (indexes(first), indexes(second)) == ([0, 3], [1, 2, 3])
    assert without(nodes, {}) == nodes


def test_more_foreign_gpus_than_there_are_leave_what_runs() -> None:
    (node,) = without([gpu_node("a", 2)], {"a": 9}, own={("a", 1)})
    assert indexes(node) == [1]


def test_links_to_a_gpu_that_is_held_are_gone() -> None:
    linked = replace(gpu_node("a", 4), nvlink=(frozenset({0, 1, 2}), frozenset({2, 3})))
    (node,) = without([linked], {"a": 1})
    assert node.nvlink == (frozenset({0, 1, 2}),)


@pytest.mark.parametrize(
    ("since", "ready", "schedulable"),
    [(GRACE - timedelta(seconds=1), True, False), (GRACE, False, True), (None, False, True)],
)
def test_a_node_that_is_not_ready_is_gone_after_the_grace(
    since: timedelta | None, ready: bool, schedulable: bool
) -> None:
    node = gpu_node("a", ready=False, unready_since=None if since is None else NOON - since)
    (found,) = standing([node], NOON)
    assert (found.ready, found.schedulable) == (ready, schedulable)


def test_the_first_grace_to_end_is_the_next_change() -> None:
    nodes = [
        gpu_node("a"),
        gpu_node("b", ready=False, unready_since=NOON - timedelta(seconds=10)),
        gpu_node("c", ready=False, unready_since=NOON - timedelta(seconds=20)),
        gpu_node("d", ready=False, unready_since=NOON - timedelta(hours=1)),
    ]
    assert next_change(nodes, NOON) == NOON - timedelta(seconds=20) + GRACE
    assert next_change(nodes[:1], NOON) is None


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
    (fresh,) = fleet_facts([pool()], [node])
    (running,) = fleet_facts([pool()], [node], {"default/p": [CurrentServer("p-0", "a", (0,), {"m": (0,)})]})
    assert [each.schedulable for each in fresh.nodes] == without_server
    assert [each.schedulable for each in running.nodes] == with_server
