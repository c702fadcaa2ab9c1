"""Steps of ensembles have two instances where the plan leaves room for them, and never at the cost of anything else."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster
from tests.properties import examples

from argosy.api import Resource
from argosy.api.status import InferenceModelStatus
from argosy.planning.facts import Gpu, Node

POOL = pool(memoryHeadroom="0%")


def settled(nodes: Sequence[Node], *resources: Resource) -> Cluster:
    cluster = Cluster(tuple(nodes))
    cluster.settle([POOL, *resources])
    return cluster


def instances(cluster: Cluster) -> dict[str, list[int]]:
    """Return the instances of each replica, by model."""
    assert cluster.outcome is not None
    statuses = cluster.outcome.statuses
    return {
        key.partition("/")[2]: [placement.instances for placement in status.placement]
        for key, status in statuses.items()
        if isinstance(status, InferenceModelStatus)
    }


def loads(cluster: Cluster) -> dict[tuple[str, int], int]:
    """Return the bytes that the plan has on each GPU."""
    assert cluster.outcome is not None
    used: dict[tuple[str, int], int] = {}
    for of_pool in cluster.outcome.plan.pools:
        for server in of_pool.servers:
            for placement in server.placements:
                for gpu in placement.gpus:
                    used[server.node, gpu] = used.get((server.node, gpu), 0) + placement.memory
    return used


def test_steps_overlap_where_there_is_memory() -> None:
    steps = [model("a", memory=20), model("b", memory=10)]
    cluster = settled([gpu_node("n")], *steps, ensemble("e", "a", "b"), model("alone", memory=10))
    assert instances(cluster) == {"a": [2], "b": [2], "alone": [1]}
    assert loads(cluster) == {("n", 0): 70 * GIB}


def test_the_configuration_has_them() -> None:
    cluster = settled([gpu_node("n")], model("a"), model("b"), ensemble("e", "a", "b"))
    assert cluster.outcome is not None
    ((server,),) = cluster.outcome.steps.values()
    texts = {one.name: one.config_text for one in server.repository.models}
    assert "count: 2" in texts["a"]
    assert "count: 2" in texts["b"]


def test_the_smallest_steps_come_first_and_no_further_gpu_is_taken() -> None:
    steps = [model("a", memory=40), model("b", memory=10)]
    cluster = settled([gpu_node("n", 2)], *steps, ensemble("e", "a", "b"))
    assert instances(cluster) == {"a": [1], "b": [2]}
    assert loads(cluster) == {("n", 0): 60 * GIB}


def test_compute_that_is_declared_counts() -> None:
    footprints = [{"gpuMemory": "10Gi", "compute": share} for share in ("60%", "20%")]
    steps = [model(name, footprint=footprint) for name, footprint in zip("ab", footprints, strict=True)]
    assert instances(settled([gpu_node("n")], *steps, ensemble("e", "a", "b"))) == {"a": [1], "b": [2]}


def test_replicas_differ_where_their_gpus_do() -> None:
    nodes = [gpu_node("n"), gpu_node("o", memory=50)]
    steps = [model("a", memory=25, replicas=2), model("b", memory=15, replicas=2)]
    cluster = settled(nodes, *steps, ensemble("e", "a", "b", replicas=2))
    assert sorted(instances(cluster)["a"]) == [1, 2]
    assert sorted(instances(cluster)["b"]) == [1, 2]


@pytest.mark.parametrize(
    "own",
    [
        {"instances": 1},
        {"instanceGroups": [{"count": 1}]},
        {"scaling": {}},
        {"sequence": {"direct": {}}},
        {"footprint": None},
    ],
)
def test_what_is_declared_or_unknown_stays(own: dict[str, Any]) -> None:
    cluster = settled([gpu_node("n", 2)], model("a", **own), model("b"), ensemble("e", "a", "b"))
    assert instances(cluster)["a"] == [1]
    assert instances(cluster)["b"] == [2]


@pytest.mark.parametrize(
    "own", [{"config": {"model_transaction_policy": {"decoupled": True}}}, {"modelFormat": {"name": "vllm"}}]
)
def test_what_answers_in_pieces_keeps_their_order(own: dict[str, Any]) -> None:
    streaming = ensemble("streaming", "before", "pieces", "behind")
    others = [model(name, memory=10) for name in ("before", "behind", "c")]
    cluster = settled([gpu_node("n")], model("pieces", **own), *others, streaming, ensemble("e", "c"))
    assert instances(cluster) == {"before": [1], "pieces": [1], "behind": [1], "c": [2]}


@pytest.mark.parametrize(("format_", "count"), [("onnx", 2), ("python", 2), ("pytorch", 1)])
def test_on_a_cpu_it_depends_on_the_backend(format_: str, count: int) -> None:
    node = Node("n", (Gpu(0, 64 * GIB, is_cpu=True),))
    step = model("a", memory=0, modelFormat={"name": format_})
    assert instances(settled([node], step, ensemble("e", "a")))["a"] == [count]


def test_a_later_model_displaces_further_instances_until_it_leaves() -> None:
    resources = [POOL, model("a", memory=20), model("b", memory=20), ensemble("e", "a", "b")]
    cluster = settled([gpu_node("n")], *resources[1:])
    assert instances(cluster) == {"a": [2], "b": [2]}
    cluster.keep_routed([*resources, model("c", memory=40)], ["a", "b", "e"])
    assert instances(cluster) == {"a": [1], "b": [1], "c": [1]}
    cluster.keep_routed(resources, ["a", "b", "e"])
    assert instances(cluster) == {"a": [2], "b": [2]}


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 3), st.permutations(range(6)))
@examples(12)
def test_nothing_is_over_full_and_nothing_else_changes(sizes: list[int], gpus: int, order: list[int]) -> None:
    names = [f"m{at}" for at in range(len(sizes))]
    steps = [model(name, memory=size) for name, size in zip(names, sizes, strict=True)]
    fixed = [one.model_copy(update={"spec": one.spec.model_copy(update={"instances": 1})}) for one in steps]
    joined = ensemble("e", *names[:3])
    overlapping, alone = settled([gpu_node("n", gpus)], *steps, joined), settled([gpu_node("n", gpus)], *fixed, joined)
    assert all(used <= 80 * GIB for used in loads(overlapping).values())
    assert loads(overlapping).keys() == loads(alone).keys()
    shuffled = [[*steps, joined][at] for at in order if at <= len(steps)]
    missing = [one for one in [*steps, joined] if one not in shuffled]
    assert instances(settled([gpu_node("n", gpus)], *shuffled, *missing)) == instances(overlapping)
