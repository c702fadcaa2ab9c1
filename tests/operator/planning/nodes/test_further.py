"""Further nodes: what is true of their type holds for them, and nothing is on them."""

from dataclasses import replace

from tests.operator.planning.declared import GIB
from tests.operator.planning.nodes.slices_v1 import divisible, gpu, resource_slice
from tests.operator.planning.nodes.test_dra import bare, chosen, names, node

from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.dra.documents import Allocation
from argosy.planning.nodes.dra.partitions import offered
from argosy.planning.nodes.further import further_node
from argosy.planning.nodes.slices import first_index
from argosy.planning.spreading import HOSTNAME

MIG = "MIG (nvidia.com/mig-9g.90gb, a profile that is not supported)"


def test_pods_and_cordons_stay_where_they_are_and_mig_s_layout_is_that_of_the_type() -> None:
    first = first_index("1g.10gb", single=False) or 0
    gpus = (
        Gpu(0, 80 * GIB, withheld_by="Pod a/b"),
        Gpu(1, 80 * GIB, withheld_by="the cordon of GPU 1 of node a (device errors)", cordoned=True),
        Gpu(2, 80 * GIB, withheld_by=MIG),
        Gpu(first, 10 * GIB, compute=142, closed="a taint", leaving=True),
    )
    unreachable = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    taints = ({"key": "gpu", "effect": "NoSchedule"}, unreachable)
    original = Node("a", gpus, "NVIDIA-H100", labels={HOSTNAME: "a", "zone": "z"}, taints=taints, schedulable=False)
    copy = further_node(original, "b")
    assert (copy.name, copy.labels, copy.taints) == ("b", {HOSTNAME: "b", "zone": "z"}, taints[:1])
    assert [(one.withheld_by, one.cordoned, one.compute) for one in copy.gpus] == [
        ("", False, 1000),
        ("", False, 1000),
        (MIG, False, 1000),
        ("", False, 142),
    ]
    assert copy.gpus[3] == Gpu(first, 10 * GIB, compute=142)
    assert copy.schedulable
    assert further_node(copy, "c") == replace(copy, name="c", labels={HOSTNAME: "c", "zone": "z"})


def test_a_gpu_that_is_divided_for_a_claim_is_offered_as_a_new_node_has_it() -> None:
    claim = {Allocation("gpu.nvidia.com", "a", "gpu-0-mig-1g-10gb-2"): "ResourceClaim team/x"}
    (original,) = offered((node(*divisible(0, 1), holders=claim),), ())
    assert names(original)["gpu-0-mig-1g-10gb-2"] == "ResourceClaim team/x"
    assert "gpu-0" not in names(original)
    assert names(further_node(original, "b")) == {"gpu-0": "", "gpu-1": ""}


def test_a_copy_has_the_partitions_that_the_annotation_names() -> None:
    profiles = bare(annotations={"argosy.dev/gpu-partitions": "3g.40gb"})
    original = node(*divisible(0), of=profiles)
    assert names(further_node(chosen(original), "b")) == names(chosen(original))
    assert names(further_node(chosen(original, "gpu-0"), "b")) == names(chosen(original))


def test_a_taint_of_a_device_is_its_own() -> None:
    tainted = gpu(0)
    tainted["taints"] = [{"key": "health", "value": "bad", "effect": "NoSchedule"}]
    original = chosen(node(resource_slice("s", tainted, gpu(1))))
    assert (bool(names(original)["gpu-0"]), names(original)["gpu-1"]) == (True, "")
    assert not any(names(further_node(original, "b")).values())
