"""Which nodes a pool's servers may run on, as Kubernetes means node selectors, taints and tolerations."""

from typing import Any

import pytest
from tests.operator.planning.declared import gpu_node, pool

from argosy.api import ServingPool
from argosy.api.servingpool import Toleration
from argosy.planning.nodes.selection import closed, selected, tolerates

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
ENDS = {**TAINT, "effect": "NoExecute"}


def declared(**spec: Any) -> ServingPool:
    result = pool(**spec)
    assert isinstance(result, ServingPool)
    return result


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "other", "value": "yes"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_toleration_puts_up_with_the_taint_that_it_names(toleration: dict[str, str], expected: bool) -> None:
    assert tolerates(Toleration.model_validate(toleration), TAINT) is expected


def test_a_taint_without_a_value_is_tolerated_by_one_without() -> None:
    assert tolerates(Toleration.model_validate({"key": "gpu"}), {"key": "gpu", "effect": "NoSchedule"})


def test_every_selected_label_counts_and_nodes_come_by_name() -> None:
    nodes = [
        gpu_node("c", labels={"zone": "x", "gpu": "h100"}),
        gpu_node("b", labels={"zone": "x"}),
        gpu_node("a", labels={"zone": "x", "gpu": "h100", "more": "yes"}),
    ]
    result = selected(declared(nodeSelector={"zone": "x", "gpu": "h100"}), nodes)
    assert [item.name for item in result] == ["a", "c"]
    assert [item.name for item in selected(declared(), nodes)] == ["a", "b", "c"]


def test_a_node_that_is_not_ready_is_not_selected_even_where_servers_run() -> None:
    assert selected(declared(), [gpu_node("a", ready=False)], {"a"}) == ()


def test_a_node_that_lost_its_label_is_left_once_its_servers_moved() -> None:
    node, wants = gpu_node("a"), declared(nodeSelector={"zone": "x"})
    assert selected(wants, [node]) == ()
    (result,) = selected(wants, [node], {"a"})
    assert (result.schedulable, result.lost) == (False, True)
    assert closed(wants, [node]) == frozenset()


def test_a_node_of_which_only_the_last_facts_are_recorded_closes_nothing() -> None:
    node = gpu_node("a", schedulable=False, stale=True)
    assert closed(declared(), [node]) == frozenset()
    (result,) = selected(declared(nodeSelector={"zone": "x"}), [node], {"a"})
    assert not result.lost


@pytest.mark.parametrize("state", [{"schedulable": False}, {"taints": (TAINT,)}])
def test_what_keeps_new_pods_away_leaves_the_node_to_what_runs_there(state: dict[str, Any]) -> None:
    node = gpu_node("a", **state)
    assert selected(declared(), [node]) == ()
    (result,) = selected(declared(), [node], {"a"})
    assert not result.schedulable
    assert closed(declared(), [node]) == {"a"}


def test_a_taint_that_ends_what_runs_takes_the_node_away() -> None:
    node = gpu_node("a", taints=(TAINT, ENDS))
    assert selected(declared(), [node], {"a"}) == ()
    only_new = declared(tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}])
    assert [item.schedulable for item in selected(only_new, [node], {"a"})] == [False]
    every = declared(tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert selected(every, [node]) == (node,)
    assert closed(every, [node]) == frozenset()


def test_a_node_s_state_comes_from_the_node_and_not_from_its_taints() -> None:
    """A taint of Kubernetes' own may come before or after the state that it stands for."""
    node = gpu_node("a", taints=({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},))
    assert selected(declared(), [node]) == (node,)


def test_a_node_that_is_not_ready_is_not_closed() -> None:
    """What ends there may come back: that is decided when its grace is over."""
    assert closed(declared(), [gpu_node("a", ready=False, schedulable=False)]) == frozenset()
