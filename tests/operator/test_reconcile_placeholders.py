"""What fits nowhere waits for a node: the placeholder that asks for it comes in that round, and goes with the node."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning.declared import gpu_node, model, pool
from tests.operator.planning.simulated_cluster import POOL, Cluster

from argosy.api import ConditionType
from argosy.planning.facts import Node
from argosy.reconcile import RoundOutcome
from argosy.replay.codec import decoded_snapshot, encoded

PRODUCT = "NVIDIA-H100-80GB-HBM3"


def node(name: str, **state: Any) -> Node:
    return gpu_node(name, product=PRODUCT, **state)


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of one node with one GPU, in which placeholders are possible."""
    cluster = Cluster((node("a"),))
    cluster.snapshot = replace(cluster.snapshot, placeholders=True)
    return cluster


def counts(outcome: RoundOutcome) -> list[int]:
    """Return the number of Pods of each placeholder."""
    return [placeholder.count for placeholder in outcome.placeholders.get(POOL, ())]


def test_a_placeholder_comes_in_the_round_of_the_model_and_goes_in_that_of_the_node(cluster: Cluster) -> None:
    first = [pool(), model("m", memory=60)]
    assert counts(cluster.settle(first)) == []
    both = [*first, model("n", memory=60)]
    outcome = cluster.tick(both)
    assert counts(outcome) == [1]
    (placeholder,) = outcome.placeholders[POOL]
    message = outcome.statuses["InferenceModel default/n"].condition(ConditionType.PLACED)
    assert message is not None
    assert f"It waits for a node: placeholder {placeholder.name} asks for 1 GPU of {PRODUCT}." in message.message
    cluster.nodes = (*cluster.nodes, node("b"))
    assert counts(cluster.tick(both)) == []
    cluster.settle(both)
    assert {name: server.step.plan.node for name, server in cluster.servers.items()} == {"p-0": "a", "p-1": "b"}


def test_it_goes_with_the_model_that_needed_it(cluster: Cluster) -> None:
    resources = [pool(), model("m", memory=60), model("n", memory=60)]
    assert counts(cluster.settle(resources)) == [1]
    assert counts(cluster.tick(resources[:2])) == []


def test_a_pool_may_have_none(cluster: Cluster) -> None:
    resources = [pool(nodeAutoscaling={"maxPlaceholders": 0}), model("m", memory=60), model("n", memory=60)]
    outcome = cluster.settle(resources)
    assert counts(outcome) == []
    assert "placeholder" not in cluster.message("n", ConditionType.PLACED)


def test_without_a_class_of_a_lower_priority_there_are_none() -> None:
    cluster = Cluster((node("a"),))
    assert counts(cluster.settle([pool(), model("m", memory=60), model("n", memory=60)])) == []


def test_a_node_that_is_taken_away_is_requested_again(cluster: Cluster) -> None:
    resources = [pool(), model("m", memory=60), model("n", memory=60)]
    cluster.nodes = (*cluster.nodes, node("b"))
    assert counts(cluster.settle(resources)) == []
    cluster.lose("a")
    assert counts(cluster.tick(resources)) == [1]


def test_a_bundle_says_whether_there_may_be_any(cluster: Cluster) -> None:
    cluster.settle([pool(), model("m", memory=60), model("n", memory=60)])
    assert decoded_snapshot(encoded(cluster.snapshot)).placeholders
