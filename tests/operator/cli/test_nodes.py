"""Reading nodes: GPU feature discovery's labels, NVLink, readiness, and what is wrong with a file."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.operator.planning.nodes.slices_v1 import divisible, gpu, resource_slice

from argosy.cli.planning.fleet.nodes import NodesError, ReadNodes, faults_of, parse_nodes, read_nodes
from argosy.planning.facts import Node

H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.compute.major": "9",
    "nvidia.com/gpu.compute.minor": "0",
}


def body(name: str = "a", gpus: object = "4", **changed: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {**H100, **changed.pop("labels", {})}, **changed.pop("metadata", {})}
    status = {"capacity": {"nvidia.com/gpu": gpus, "memory": "64Gi"}, **changed.pop("status", {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status, **changed}


def parsed(*bodies: dict[str, Any]) -> ReadNodes:
    return parse_nodes(json.dumps({"kind": "NodeList", "items": list(bodies)}), "nodes.json")


def read(*bodies: dict[str, Any]) -> tuple[Node, ...]:
    return parsed(*bodies).nodes


def test_gpus_come_from_labels_and_capacity() -> None:
    (node,) = read(body())
    assert [(gpu.index, gpu.memory, gpu.is_cpu) for gpu in node.gpus] == [(i, 81559 << 20, False) for i in range(4)]
    assert (node.product, node.compute_capability, node.ready) == ("NVIDIA-H100-80GB-HBM3", "9.0", True)
    assert node.labels["nvidia.com/gpu.memory"] == "81559"


def test_the_boot_of_a_node_is_identified_by_its_id() -> None:
    status = {"capacity": {"nvidia.com/gpu": "4"}, "nodeInfo": {"bootID": "5f0b"}}
    assert [node.boot_id for node in read(body(), body("b", status=status))] == ["", "5f0b"]


def test_what_is_allocatable_comes_before_capacity_and_the_label() -> None:
    (node,) = read(body(status={"allocatable": {"nvidia.com/gpu": "3"}}, labels={"nvidia.com/gpu.count": "8"}))
    assert len(node.gpus) == 3
    (counts,) = read(body(status={"capacity": {"memory": "1Gi"}}, labels={"nvidia.com/gpu.count": "8"}))
    assert len(counts.gpus) == 8


@pytest.mark.parametrize(
    ("status", "labels"),
    [
        ({"allocatable": {"nvidia.com/gpu": "0"}}, {}),
        ({"allocatable": {"nvidia.com/gpu": "0"}, "capacity": {"nvidia.com/gpu": "0"}}, {"nvidia.com/gpu.count": "4"}),
        ({"allocatable": {"memory": "1Gi"}, "capacity": {"nvidia.com/gpu": "0"}}, {"nvidia.com/gpu.count": "4"}),
    ],
)
def test_a_node_without_its_device_plugin_keeps_its_gpus_as_if_cordoned(
    status: dict[str, Any], labels: dict[str, str]
) -> None:
    (node,) = read(body(status=status, labels=labels))
    assert [(gpu.index, gpu.is_cpu) for gpu in node.gpus] == [(index, False) for index in range(4)]
    assert (node.ready, node.schedulable) == (True, False)


UNLABELLED = "MIG (nvidia.com/mig-1g.10gb, without the label nvidia.com/mig-1g.10gb.memory)"


@pytest.mark.parametrize(("full", "sliced"), [("0", 8), ("5", 3)])
def test_gpus_that_mig_divides_into_slices_of_their_own_are_withheld(full: str, sliced: int) -> None:
    """The device plugin's mixed strategy: such a node is neither cordoned nor without GPUs."""
    offered = {"nvidia.com/gpu": full, "nvidia.com/mig-1g.10gb": "21", "nvidia.com/mig-2g.20gb": "0"}
    status = {"capacity": {**offered, "memory": "64Gi"}, "allocatable": offered}
    (node,) = read(body(status=status, labels={"nvidia.com/gpu.count": "8", "nvidia.com/mig.strategy": "mixed"}))
    assert (node.ready, node.schedulable, len(node.gpus)) == (True, True, 8)
    holders = [gpu.withheld_by for gpu in node.gpus]
    assert holders == [""] * (8 - sliced) + [UNLABELLED] * sliced


def test_slices_of_a_gpu_are_not_joined() -> None:
    product = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "nvidia.com/gpu.count": "7"}
    (node,) = read(body(gpus="7", labels=product))
    assert (len(node.gpus), node.nvlink) == (7, ())


def test_time_slices_are_no_gpus() -> None:
    labels = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.count": "2"}
    (node,) = read(body(gpus="8", labels=labels))
    assert len(node.gpus) == 2


@pytest.mark.parametrize(
    ("product", "joined"),
    [
        ("NVIDIA-H100-80GB-HBM3", True),
        ("NVIDIA-A100-SXM4-80GB", True),
        ("NVIDIA-H100-NVL", True),
        ("NVIDIA-H200", True),
        ("NVIDIA-L40S", False),
        ("NVIDIA-H100-PCIe", False),
    ],
)
def test_nvlink_follows_from_the_product(product: str, joined: bool) -> None:
    (node,) = read(body(labels={"nvidia.com/gpu.product": product}))
    assert node.nvlink == ((frozenset({0, 1, 2, 3}),) if joined else ())


@pytest.mark.parametrize(
    ("annotation", "groups"),
    [("0,1;2,3", [{0, 1}, {2, 3}]), ("all", [{0, 1, 2, 3}]), ("none", []), ("0, 2 ; 1", [{0, 2}])],
)
def test_an_annotation_says_which_gpus_are_joined(annotation: str, groups: list[set[int]]) -> None:
    (node,) = read(body(metadata={"annotations": {"argosy.dev/nvlink": annotation}}))
    assert [set(group) for group in node.nvlink] == groups


@pytest.mark.parametrize("annotation", ["0,4", "0-3", "0,1;1,2", "yes"])
def test_an_annotation_that_cannot_be_is_named(annotation: str) -> None:
    with pytest.raises(NodesError, match=r"Node a: takes nothing new: metadata.annotations\[argosy.dev/nvlink\]: "):
        read(body(metadata={"annotations": {"argosy.dev/nvlink": annotation}}))


def test_a_node_without_gpus_is_a_cpu_slot_with_its_memory() -> None:
    (node,) = read(body(gpus="0"))
    assert [(gpu.memory, gpu.is_cpu) for gpu in node.gpus] == [(64 << 30, True)]
    assert node.nvlink == ()


def test_nodes_that_take_no_pods_are_not_ready() -> None:
    since = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T12:00:00Z"}
    conditions, silent = {"conditions": [since]}, {"conditions": [{"type": "Ready", "status": "False"}]}
    cordoned, lost, mute = read(
        body("a", spec={"unschedulable": True}), body("b", status=conditions), body("c", status=silent)
    )
    assert (cordoned.ready, cordoned.schedulable, cordoned.unready_since) == (True, False, None)
    assert (lost.ready, lost.unready_since) == (False, datetime(2026, 1, 1, 12, tzinfo=UTC))
    assert (mute.ready, mute.unready_since) == (False, None)


def test_taints_are_retained() -> None:
    taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
    (node,) = read(body(spec={"taints": [taint]}))
    assert node.taints == (taint,)


def test_a_node_that_cannot_be_read_takes_nothing_new_and_the_others_count() -> None:
    odd = [
        body("a", labels={"nvidia.com/gpu.memory": "80G"}),
        body("b", gpus="four"),
        body("c"),
        body("c", gpus="1"),
        {"kind": "Node", "metadata": {}},
        {"kind": "Node", "metadata": {"name": "d", "labels": ["x"]}},
    ]
    result, expected = parsed(*odd), "expected a whole number; found"
    assert [(node.name, len(node.gpus), node.schedulable, node.stale) for node in result.nodes] == [
        ("a", 0, False, True),
        ("b", 0, False, True),
        ("c", 4, True, False),
    ]
    assert list(result.warnings) == [
        "nodes.json: Node c: there are two nodes named c, and the first counts; keep one",
        "nodes.json: Node: metadata.name: is required",
        "nodes.json: Node d: labels: expected a map; found ['x']",
        f"nodes.json: Node a: takes nothing new: metadata.labels[nvidia.com/gpu.memory]: {expected} '80G'",
        f"nodes.json: Node b: takes nothing new: status.capacity[nvidia.com/gpu]: {expected} 'four'",
    ]
    assert [line.partition(": ")[0] for line in faults_of(result.nodes)] == ["Node a", "Node b"]


def test_a_file_of_which_no_node_can_be_read_is_refused() -> None:
    with pytest.raises(NodesError, match=r"Node a: takes nothing new: .*expected a whole number; found 'Unknown'"):
        read(body("a", labels={"nvidia.com/gpu.memory": "Unknown"}))


def test_a_file_without_nodes_says_how_to_get_them(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("kind: ConfigMap\n---\n- 1\n")
    with pytest.raises(NodesError, match=r"holds no Node; .* kubectl get nodes -o yaml > nodes\.yaml$"):
        read_nodes(file)
    file.write_text("kind: [Node")
    with pytest.raises(NodesError, match=r"nodes.yaml: line \d"):
        read_nodes(file)
    with pytest.raises(NodesError, match="there is no such file"):
        read_nodes(tmp_path / "missing.yaml")


BARE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"capacity": {"memory": "64Gi"}}}


def test_devices_come_from_resource_slices_in_the_file() -> None:
    (node,) = read(*divisible(0, 1), BARE)
    assert [gpu.device.name for gpu in node.gpus] in (["gpu-0", "gpu-1"], ["gpu-1", "gpu-0"])
    half = resource_slice("s", gpu(0), pool={"resourceSliceCount": 2})
    incomplete = parsed(half, BARE)
    assert "Node a: takes nothing new: pool a of gpu.nvidia.com has 1 of 2 ResourceSlices" in incomplete.warnings[0]
    assert not incomplete.nodes[0].schedulable
    (wrong,) = parsed(resource_slice("s", gpu(0), devices=["gpu-0"]), BARE).warnings
    assert wrong.startswith("nodes.json: ResourceSlice s: is not as resource.k8s.io/v1 has it")
