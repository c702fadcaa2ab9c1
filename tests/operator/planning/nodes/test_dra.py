"""Devices of ResourceSlices are GPUs of nodes: which, with what, and what may be had at once."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import celpy
import pytest
from celpy.adapter import json_to_cel
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1ResourceSlice
from tests.operator.planning.declared import GIB, ensemble, facts_of, model, pool
from tests.operator.planning.nodes.slices_v1 import (
    Body,
    counters,
    divisible,
    every,
    gpu,
    partition,
    resource_slice,
)
from tests.properties import examples

from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.dra.documents import Allocation, allocations_of, rule_of, slice_of
from argosy.planning.nodes.dra.partitions import Offers, offered
from argosy.planning.nodes.dra.pools import node_devices, with_devices, with_holders
from argosy.planning.nodes.last_reported import hardware_text, parse_hardware, with_last_reported
from argosy.planning.nodes.parse import node_of
from argosy.planning.nodes.reported.lost_gpus import GpuUse
from argosy.planning.nodes.reported.present import present
from argosy.planning.nodes.slices import is_dra, is_slice, resource_of
from argosy.planning.packing.priorities import pack_by_priority

Holders = Mapping[Allocation, str]


def bare(name: str = "a", annotations: Mapping[str, str] | None = None, **offer: str) -> Node:
    """Return a node of which no label tells of GPUs."""
    metadata = {"name": name, "annotations": dict(annotations or {})}
    return node_of({"metadata": metadata, "status": {"capacity": {"memory": "64Gi", **offer}}})


def node(*slices: Body, holders: Holders | None = None, rules: Collection[Body] = (), of: Node | None = None) -> Node:
    """Return the node `a` with what these slices publish."""
    parsed = [one for body in slices if (one := slice_of(body))]
    published = node_devices(parsed, [rule for body in rules if (rule := rule_of(body))])
    (result,) = with_devices([of or bare()], with_holders(published, holders or {}))
    return result


def names(of: Node) -> dict[str, str]:
    """Return the holder of each device, by name."""
    return {gpu.device.name: gpu.withheld_by for gpu in of.gpus if gpu.device is not None}


def named(of: Node, name: str) -> Gpu:
    """Return the device of a name."""
    (result,) = [gpu for gpu in of.gpus if gpu.device is not None and gpu.device.name == name]
    return result


def chosen(of: Node, *held: str) -> Node:
    """Return the node with what can be had next to the devices that servers have."""
    (result,) = offered([of], {(of.name, named(of, name).index) for name in held})
    return result


@pytest.mark.parametrize("body", [resource_slice("s", gpu(0), partition(0, "1g.10gb", 2)), *divisible(0, 1)])
def test_the_documents_are_those_of_the_client(body: Body) -> None:
    read = V1ResourceSlice.from_dict(body)
    assert read is not None
    assert read.model_dump(mode="json", by_alias=True, exclude_none=True) == body


def test_gpus_have_their_memory_product_capability_and_links() -> None:
    result = node(resource_slice("s", *(gpu(at) for at in (10, 2, 0))))
    assert [gpu.memory for gpu in result.gpus] == [80 * GIB] * 3
    assert (result.product, result.compute_capability, result.schedulable) == ("NVIDIA-A100-SXM4-80GB", "8.0", True)
    assert {resource_of(gpu.index) for gpu in result.gpus} == {""}
    assert result.nvlink == (frozenset(gpu.index for gpu in result.gpus),)
    pairs = bare(annotations={"argosy.dev/nvlink": "0,1"})
    linked = node(resource_slice("s", *(gpu(at) for at in (10, 2, 0))), of=pairs)
    assert linked.nvlink == (frozenset({named(linked, "gpu-0").index, named(linked, "gpu-2").index}),)


def test_a_device_is_requested_by_its_uuid_or_by_all_of_its_attributes() -> None:
    device = named(node(resource_slice("s", gpu(3))), "gpu-3").device
    assert device is not None
    of_driver = 'device.attributes["gpu.nvidia.com"]'
    assert device.device_class == "gpu.nvidia.com"
    assert device.selector == (
        f'device.driver == "gpu.nvidia.com" && "uuid" in {of_driver} && {of_driver}["uuid"] == "GPU-3"'
    )
    part = named(node(*divisible(0)), "gpu-0-mig-1g-10gb-2").device
    assert part is not None
    assert part.device_class == "mig.nvidia.com"
    assert 'device.attributes["gpu.nvidia.com"]["profile"] == "1g.10gb"' in part.selector
    assert '"memorySlice2" in device.capacity["gpu.nvidia.com"]' in part.selector
    assert "8.0.0" not in part.selector, "a version changes with the driver"


def test_an_index_is_of_one_device_and_a_replaced_gpu_is_another_one() -> None:
    before, after = node(resource_slice("s", gpu(0))), gpu(0)
    after["attributes"]["uuid"]["string"] = "GPU-new"
    assert node(resource_slice("s", after)).gpus[0].index != before.gpus[0].index
    assert is_dra(before.gpus[0].index)
    assert not is_slice(before.gpus[0].index)
    assert is_slice(named(node(*divisible(0)), "gpu-0-mig-1g-10gb-2").index)


@pytest.mark.parametrize(
    ("device", "why"),
    [
        (gpu(0, "0"), "capacity memory"),
        (gpu(0, allowMultipleAllocations=True), "several ResourceClaims"),
        (gpu(0) | {"capacity": {}}, "capacity memory"),
        (partition(0, "1g.10gb", 0) | {"attributes": gpu(0)["attributes"] | {"type": {"string": "mig"}}}, "profile"),
    ],
)
def test_what_cannot_be_used_is_withheld_with_the_reason_and_the_others_are_used(device: Body, why: str) -> None:
    result = node(resource_slice("s", device, gpu(1)))
    assert names(result)[device["name"]].startswith(f"its ResourceSlice ({device['name']}: ")
    assert why in names(result)[device["name"]]
    assert names(result)["gpu-1"] == ""


def test_devices_that_no_attribute_tells_apart_are_withheld() -> None:
    twins = [partition(0, "1g.10gb", 0), partition(0, "1g.10gb", 0) | {"name": "twin"}]
    assert all("no attribute tells it from" in holder for holder in names(node(resource_slice("s", *twins))).values())


def test_what_is_no_gpu_and_what_is_on_several_nodes_is_left_out() -> None:
    other = gpu(1) | {"attributes": {"type": {"string": "vfio"}}}
    far = resource_slice("far", gpu(5), nodeName="", allNodes=True)
    assert list(names(node(resource_slice("s", gpu(0), other), far))) == ["gpu-0"]
    fields = [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
    by_selector = resource_slice(
        "s", gpu(0), nodeName="", nodeSelector={"nodeSelectorTerms": [{"matchFields": fields}]}
    )
    assert list(names(node(by_selector))) == ["gpu-0"]
    per_device = resource_slice(
        "s", gpu(0, nodeName="a"), gpu(1, nodeName="b"), nodeName="", perDeviceNodeSelection=True
    )
    assert list(names(node(per_device))) == ["gpu-0"]


def test_half_a_pool_takes_nothing_new_and_a_stale_generation_is_ignored() -> None:
    old = resource_slice("old", gpu(0), pool={"generation": 1})
    half = resource_slice("half", gpu(1), pool={"generation": 2, "resourceSliceCount": 2})
    result = node(old, half)
    assert (result.schedulable, result.stale) == (False, True)
    assert "1 of 2 ResourceSlices of generation 2" in result.fault
    assert list(names(result)) == ["gpu-1"]
    complete = node(old, half, resource_slice("rest", gpu(0), pool={"generation": 2, "resourceSliceCount": 2}))
    assert (complete.schedulable, complete.stale, complete.fault, len(complete.gpus)) == (True, False, "", 2)


def test_a_pool_that_is_incomplete_takes_nothing_from_the_node_s_other_pools() -> None:
    half: Body = {"name": "other", "resourceSliceCount": 5}
    several_nodes = resource_slice("o", gpu(5, nodeName="a"), nodeName="", perDeviceNodeSelection=True, pool=half)
    result = node(resource_slice("s", gpu(0)), several_nodes)
    assert (result.schedulable, result.stale, result.fault) == (True, True, ""), "what runs there stays"
    assert names(chosen(result))["gpu-0"] == ""
    assert "pool other of gpu.nvidia.com has 1 of 5 ResourceSlices" in names(chosen(result))["gpu-5"]
    held = named(chosen(result, "gpu-5"), "gpu-5")
    assert (held.withheld_by, held.closed.startswith("pool other"), held.leaving) == ("", True, False)


@pytest.mark.parametrize("count", [1, 5])
def test_a_pool_that_repeats_a_device_of_the_node_s_own_pool_withholds_its_own_alone(count: int) -> None:
    again = resource_slice("o", gpu(0), pool={"name": "0-other", "resourceSliceCount": count})
    result = chosen(node(again, resource_slice("s", gpu(0))))
    free = {gpu.device.pool: gpu.index for gpu in result.gpus if gpu.device is not None and not gpu.withheld_by}
    assert free == {"a": node(resource_slice("s", gpu(0))).gpus[0].index}


def test_a_pool_that_is_complete_again_is_used_again() -> None:
    here = resource_slice("s", gpu(0))
    rest = resource_slice("o", gpu(5, nodeName="a"), nodeName="", perDeviceNodeSelection=True, pool={"name": "o"})
    half = resource_slice("p", pool={"name": "o", "resourceSliceCount": 2}, node="b")
    first, second = slice_of(here), slice_of(rest)
    third = slice_of(half)
    assert first is not None
    assert second is not None
    assert third is not None
    broken = node_devices([first, second, third])
    devices = node_devices([first, replace(second, count=2), third], before=broken)
    assert {gpu.device.fault for gpu in devices["a"].gpus if gpu.device is not None} == {""}


@pytest.mark.parametrize("amount", ["-1", "many", ""])
def test_a_counter_that_cannot_be_is_named(amount: str) -> None:
    slices = divisible(0)
    slices[0]["spec"]["sharedCounters"][0]["counters"]["multiprocessors"]["value"] = amount
    result = node(*slices)
    assert result.fault.startswith("ResourceSlice a-c: spec.sharedCounters[0].counters[multiprocessors]: ")
    assert not result.schedulable


def test_a_node_with_a_device_plugin_as_well_takes_nothing_new() -> None:
    both = bare(**{"nvidia.com/gpu": "0"})
    assert node(resource_slice("s", gpu(0)), of=both).schedulable
    plugged = node_of(
        {
            "metadata": {"name": "a", "labels": {"nvidia.com/gpu.memory": "81920"}},
            "status": {"capacity": {"nvidia.com/gpu": "1"}, "allocatable": {"nvidia.com/gpu": "1"}},
        }
    )
    result = node(resource_slice("s", gpu(0)), of=plugged)
    assert "device plugin and a DRA driver" in result.fault
    assert not result.schedulable


def test_a_gpu_is_offered_undivided_and_its_partitions_where_one_is_in_use() -> None:
    result = node(*divisible(0, 1))
    assert set(names(chosen(result))) == {"gpu-0", "gpu-1"}
    part = "gpu-0-mig-3g-40gb-4"
    assert set(names(chosen(result, part))) == {part, "gpu-0-mig-3g-40gb-0", "gpu-1"}


def test_the_annotation_says_how_gpus_are_divided() -> None:
    divided = bare(annotations={"argosy.dev/gpu-partitions": "3g.40gb, 1g.10gb"})
    result = chosen(node(*divisible(0), of=divided))
    assert set(names(result)) == {"gpu-0-mig-3g-40gb-0", "gpu-0-mig-3g-40gb-4"}
    small = bare(annotations={"argosy.dev/gpu-partitions": "1g.10gb"})
    result = node(*divisible(0), of=small)
    assert len(chosen(result).gpus) == 7
    retained = chosen(result, "gpu-0-mig-3g-40gb-4")
    assert len(retained.gpus) == 1 + 4
    assert "does not name its profile" in named(retained, "gpu-0-mig-3g-40gb-4").closed
    wrong = node(*divisible(0), of=bare(annotations={"argosy.dev/gpu-partitions": "1g.9gb"}))
    assert "no device of the node has the profile '1g.9gb'; they have 1g.10gb" in wrong.fault


def test_devices_of_other_resource_claims_are_withheld_with_all_that_excludes_them() -> None:
    claim = {
        "metadata": {"namespace": "n", "name": "c"},
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {"request": "r", "driver": "gpu.nvidia.com", "pool": "a", "device": "gpu-0-mig-3g-40gb-0"},
                        {
                            "request": "r",
                            "driver": "gpu.nvidia.com",
                            "pool": "a",
                            "device": "gpu-1",
                            "adminAccess": True,
                        },
                        {"request": "r", "driver": "net.example.com", "pool": "a", "device": "nic-0"},
                    ]
                }
            }
        },
    }
    (held,) = allocations_of(claim)
    result = chosen(node(*divisible(0, 1), holders={held: "ResourceClaim n/c"}))
    assert names(result) == {"gpu-0-mig-3g-40gb-0": "ResourceClaim n/c", "gpu-0-mig-3g-40gb-4": "", "gpu-1": ""}


def rule(**selector: str) -> Body:
    taint = {"key": "repair", "value": "soon", "effect": "NoExecute"}
    return {"metadata": {"name": "r"}, "spec": {"deviceSelector": selector, "taint": taint}}


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_tainted_device_gets_nothing_new_and_is_left_where_the_taint_evicts(effect: str) -> None:
    result = node(resource_slice("s", gpu(0, taints=[{"key": "xid", "effect": effect}]), gpu(1)))
    assert names(chosen(result)) == {"gpu-0": f"the taint xid:{effect} of its device", "gpu-1": ""}
    held = named(chosen(result, "gpu-0"), "gpu-0")
    assert (held.withheld_by, held.closed, held.leaving) == (
        "",
        f"its device has the taint xid:{effect}",
        effect == "NoExecute",
    )


def test_rules_taint_devices_and_effects_that_are_unknown_do_nothing() -> None:
    ruled = node(resource_slice("s", gpu(0), gpu(1)), rules=[rule(pool="a", device="gpu-1")])
    assert names(chosen(ruled)) == {"gpu-0": "", "gpu-1": "the taint repair=soon:NoExecute of its device"}
    nothing = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "k", "effect": "NoExecute"}}}
    assert rule_of(nothing) is None
    assert names(chosen(node(resource_slice("s", gpu(0, taints=[{"key": "k", "effect": "None"}]))))) == {"gpu-0": ""}


def test_a_device_that_is_gone_stays_with_the_server_that_answers_on_it() -> None:
    before = node(*divisible(0, 1))
    gone = named(before, "gpu-1").index
    noted = parse_hardware("a", hardware_text(before, (gone,)))
    assert noted is not None
    assert [gpu.index for gpu in noted.gpus] == [gone]
    (result,) = with_last_reported([node(*divisible(0))], [noted])
    used = {("a", gone)}
    (retained,) = present([result], used, lambda: GpuUse(used, answering=used))
    assert named(retained, "gpu-1").closed == "the node no longer offers it"
    (lost,) = present([result], used, lambda: GpuUse(used, answering=()))
    assert "gpu-1" not in names(lost)
    (silent,) = with_last_reported([bare()], [noted])
    assert (names(silent), silent.schedulable) == ({"gpu-1": ""}, False)


def redescribed(*bodies: Body) -> list[Body]:
    """Return slices of the next generation, after a driver that publishes one more attribute."""
    for body in bodies:
        body["spec"]["pool"]["generation"] = 2
        for device in body["spec"].get("devices", []):
            device["attributes"]["addressingMode"] = {"string": "HMM"}
    return list(bodies)


@pytest.mark.parametrize("name", ["gpu-0-mig-1g-10gb-0", "gpu-0-mig-3g-40gb-4", "gpu-0-mig-7g-80gb-0"])
@pytest.mark.parametrize("answers", [True, False])
def test_a_device_that_a_server_has_is_not_offered_a_second_time_under_new_attributes(name: str, answers: bool) -> None:
    of = bare(annotations={"argosy.dev/gpu-partitions": "7g.80gb,3g.40gb,1g.10gb"})
    before = node(*divisible(0), of=of)
    index = named(before, name).index
    noted = parse_hardware("a", hardware_text(before, (index,)))
    assert noted is not None
    (after,) = with_last_reported([node(*redescribed(*divisible(0)), of=of)], [noted])
    used = {("a", index)}
    (result,) = present([after], used, lambda: GpuUse(used, answering=used if answers else ()))
    held = named(result, name)
    assert (held.index, held.withheld_by) == (index, "")
    assert held.closed == "its driver describes it otherwise since its server has it"
    assert named(chosen(before, name), name).device == held.device
    assert names(result) == names(chosen(before, name)), "it takes its counters from the others as before"
    (free,) = present([after], (), lambda: GpuUse((), ()))
    assert index not in [gpu.index for gpu in free.gpus]


def test_nvlink_joins_a_gpu_that_is_described_otherwise_with_the_same_others() -> None:
    before = node(resource_slice("s", gpu(0), gpu(1)))
    index = named(before, "gpu-0").index
    noted = parse_hardware("a", hardware_text(before, (index,)))
    assert noted is not None
    replaced = gpu(0)
    replaced["attributes"]["uuid"]["string"] = "GPU-new"
    (after,) = with_last_reported([node(resource_slice("s", replaced, gpu(1)))], [noted])
    used = {("a", index)}
    (result,) = present([after], used, lambda: GpuUse(used, answering=used))
    assert [gpu.index for gpu in result.gpus] == sorted(gpu.index for gpu in before.gpus)
    assert result.nvlink == before.nvlink


def test_models_are_placed_on_gpus_and_partitions_of_dra() -> None:
    divided = bare(annotations={"argosy.dev/gpu-partitions": "3g.40gb"})
    parts = chosen(node(*divisible(0), of=divided))
    undivided = replace(chosen(node(*divisible(1, node="b"), of=bare("b"))), name="b")
    models = [model("a", memory=20), model("b", memory=10), ensemble("e", "a", "b"), model("large", memory=60)]
    (facts,) = facts_of([pool(), *models], [parts, undivided])
    plan = pack_by_priority([facts]).plan.pools[0]
    assert plan.unplaced == ()
    on = {placement.model: server.node for server in plan.servers for placement in server.placements}
    assert on == {"a": "a", "b": "a", "large": "b"}
    assert all(len(server.gpus) == 1 for server in plan.servers)


PARTS = [device["name"] for device in every(0)]


@examples(30)
@given(
    st.lists(st.sampled_from(PARTS), max_size=5, unique=True),
    st.lists(st.sampled_from(PARTS), max_size=3, unique=True),
    st.lists(st.sampled_from(["1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"]), max_size=3, unique=True),
)
def test_what_is_offered_never_exceeds_a_counter(held: list[str], foreign: list[str], profiles: list[str]) -> None:
    annotated = bare(annotations={"argosy.dev/gpu-partitions": ",".join(profiles)} if profiles else {})
    holders = {Allocation("gpu.nvidia.com", "a", name): "ResourceClaim n/c" for name in foreign}
    result = chosen(node(*divisible(0), holders=holders, of=annotated), *held)
    used: dict[str, Any] = {}
    usable = [one for one in result.gpus if not one.withheld_by]
    for device in (one.device for one in usable):
        assert device is not None
        for counter, amount in device.consumes:
            used[counter] = used.get(counter, 0) + amount
    most = {name: int(one["value"]) * 1000 for name, one in counters(0)["counters"].items()}
    assert all(amount <= most[counter.rpartition("/")[2]] for counter, amount in used.items())
    for name in held:
        assert name in names(result), "what a server has is always told of"


def as_cel(device: Body) -> Any:
    """Return a device as CEL expressions of ResourceClaims see it."""
    domains: dict[str, dict[str, dict[str, Any]]] = {"attributes": {}, "capacity": {}}
    for part, of_domain in domains.items():
        for name, one in device[part].items():
            domain, _, own = name.rpartition("/")
            value = next(iter(one.values())) if part == "attributes" else one["value"]
            of_domain.setdefault(domain or "gpu.nvidia.com", {})[own] = value
        of_domain.setdefault("resource.kubernetes.io", {})
    return json_to_cel({"driver": "gpu.nvidia.com", **domains})


def test_a_choice_is_reused_while_the_node_and_what_servers_have_are_the_same() -> None:
    offers, divisible_node = Offers(), node(*divisible(0))
    (first,) = offers.of([divisible_node], ())
    (again,) = offers.of([divisible_node], {("b", 7)})
    assert again is first
    held = {("a", named(divisible_node, "gpu-0-mig-3g-40gb-4").index)}
    (divided,) = offers.of([divisible_node], held)
    assert divided == offered([divisible_node], held)[0] != first


def test_the_expression_of_a_device_finds_it_alone() -> None:
    bodies = [*every(0), *every(1), gpu(2)]
    bodies.append(partition(3, "1g.10gb", 0))
    bodies[-1]["attributes"]["uuid"] = {"string": "MIG-\N{ROCKET}"}
    environment = celpy.Environment()
    devices = [one.device for one in node(resource_slice("s", *bodies)).gpus]
    for device in devices:
        assert device is not None
        assert "\\u" not in device.selector, "CEL has no surrogate pairs as escapes"
        program = environment.program(environment.compile(device.selector))
        assert [body["name"] for body in bodies if program.evaluate({"device": as_cel(body)})] == [device.name]
    assert len(devices) == len(bodies)
