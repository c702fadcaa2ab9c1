"""Slices of GPUs are devices of a kind of their own: each is a server's only GPU, and none stands for a whole one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, ensemble, facts_of, gpu_node, model, pool

from argosy.api import Resource
from argosy.planning.facts import CurrentServer, Device, Node, PoolFacts
from argosy.planning.nodes.last_reported import hardware_text, parse_hardware
from argosy.planning.nodes.parse import BadNodeError, node_of
from argosy.planning.nodes.reported.lost_gpus import GpuUse, without_lost
from argosy.planning.nodes.reservations import reserved
from argosy.planning.nodes.slices import compute_of, first_index, is_slice, kind_of, resource_of
from argosy.planning.packing.priorities import pack_by_priority
from argosy.planning.plan import PoolPlan
from argosy.planning.provisioning.fleet import provision_fleet

A100 = "NVIDIA-A100-SXM4-80GB"
SMALL, MEDIUM = 10_100_000, 30_400_000
"""The first indexes of `1g.10gb` and `3g.40gb`."""
UNSUPPORTED = "MIG (nvidia.com/mig-1c.2g.20gb, a profile that is not supported)"


def mixed(slices: Mapping[str, int], gpus: int = 0, name: str = "a", **labels: str) -> Node:
    """Return a node whose device plugin offers slices, by profile, under names of their own."""
    offered = {f"nvidia.com/mig-{profile}": str(count) for profile, count in slices.items()}
    memory = {"1g.10gb": "9728", "3g.40gb": "40192", "1g.10gb.me": "9728"}
    own = {f"nvidia.com/mig-{profile}.memory": memory[profile] for profile in slices if profile in memory}
    return _node(name, {"nvidia.com/gpu": str(gpus), **offered}, {**own, **labels})


def single(count: int, product: str = f"{A100}-MIG-1g.10gb", name: str = "a") -> Node:
    """Return a node whose device plugin offers slices as GPUs."""
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "9728"}
    return _node(name, {"nvidia.com/gpu": str(count)}, labels)


def _node(name: str, offered: dict[str, str], labels: dict[str, str]) -> Node:
    labelled = {"nvidia.com/gpu.product": A100, "nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.count": "2"}
    status = {"capacity": {**offered, "memory": "64Gi"}, "allocatable": offered}
    return node_of({"metadata": {"name": name, "labels": {**labelled, **labels}}, "status": status})


def facts(nodes: list[Node], *models: Resource) -> PoolFacts:
    (result,) = facts_of([pool(), *models], nodes)
    return result


def plan(nodes: list[Node], *models: Resource) -> PoolPlan:
    return pack_by_priority([facts(nodes, *models)]).plan.pools[0]


def test_slices_are_devices_with_their_memory_share_of_compute_and_resource() -> None:
    node = mixed({"1g.10gb": 2, "3g.40gb": 1}, gpus=1)
    devices = [(gpu.index, gpu.memory >> 20, gpu.compute, resource_of(gpu.index)) for gpu in node.gpus]
    assert devices == [
        (0, 81920, 1000, "nvidia.com/gpu"),
        (SMALL, 9728, 142, "nvidia.com/mig-1g.10gb"),
        (SMALL + 1, 9728, 142, "nvidia.com/mig-1g.10gb"),
        (MEDIUM, 40192, 428, "nvidia.com/mig-3g.40gb"),
    ]
    assert node.nvlink == ()
    assert not any(gpu.withheld_by for gpu in node.gpus)


def test_under_the_single_strategy_slices_are_requested_as_gpus() -> None:
    node = single(7)
    assert [gpu.compute for gpu in node.gpus] == [142] * 7
    assert {resource_of(gpu.index) for gpu in node.gpus} == {"nvidia.com/gpu"}
    assert all(is_slice(gpu.index) for gpu in node.gpus)
    assert {kind_of(gpu.index) for gpu in node.gpus} != {kind_of(SMALL)}


@pytest.mark.parametrize("product", [f"{A100}-MIG-INVALID", f"{A100}-MIG-1c.2g.20gb"])
def test_a_layout_that_is_not_one_profile_is_refused_with_the_way_out(product: str) -> None:
    with pytest.raises(BadNodeError, match=r"gpu.product.*mixed strategy"):
        single(7, product)


@pytest.mark.parametrize("memory", ["0", "-1", "Unknown"])
def test_a_slice_of_no_memory_is_refused_by_its_label(memory: str) -> None:
    with pytest.raises(BadNodeError, match=r"nvidia.com/mig-1g.10gb.memory"):
        mixed({"1g.10gb": 2}, **{"nvidia.com/mig-1g.10gb.memory": memory})


def test_slices_of_an_unknown_profile_are_withheld_and_the_others_used() -> None:
    node = mixed({"1g.10gb": 1, "1c.2g.20gb": 3})
    assert [gpu.withheld_by for gpu in node.gpus] == [UNSUPPORTED] * 2 + [""]


@given(
    st.sampled_from([f"{g}g.{gb}gb{suffix}" for g in (1, 2, 3, 4, 7) for gb in (5, 40, 141) for suffix in ("", ".me")])
)
def test_an_index_tells_the_profile(profile: str) -> None:
    first = first_index(profile, single=False)
    assert first is not None
    assert resource_of(first + 13) == f"nvidia.com/mig-{profile}"
    assert kind_of(first + 13) == first
    as_gpus = first_index(profile, single=True)
    assert as_gpus is not None
    assert (resource_of(as_gpus + 13), kind_of(as_gpus + 13) == first) == ("nvidia.com/gpu", False)


def test_an_a30_has_four_parts() -> None:
    first = first_index("1g.6gb", single=False)
    assert first is not None
    assert (compute_of(first, "NVIDIA-A30"), compute_of(first, A100), compute_of(3, A100)) == (250, 142, 1000)


def test_a_server_has_one_slice_that_has_its_memory_and_compute() -> None:
    models = [model(f"m-{n}", memory=6) for n in range(2)]
    result = plan([mixed({"1g.10gb": 2, "3g.40gb": 1})], *models, model("large", memory=30))
    assert result.unplaced == ()
    assert all(len(server.gpus) == 1 for server in result.servers)
    on = {placement.model: server.gpus for server in result.servers for placement in server.placements}
    assert on["large"] == (MEDIUM,)
    busy = {"footprint": {"gpuMemory": "2Gi", "compute": "50%"}}
    (unplaced,) = plan([mixed({"1g.10gb": 2})], model("m", **busy)).unplaced
    assert unplaced.models == ("m",)


def lack(nodes: list[Node], *models: Resource) -> tuple[str, str]:
    (unplaced,) = plan(nodes, *models).unplaced
    return unplaced.reason, unplaced.message


def test_slices_that_cannot_be_used_are_named_and_not_the_driver() -> None:
    node = mixed({"1c.2g.20gb": 3}, **{"nvidia.com/gpu.count": "0"})
    assert [gpu.withheld_by for gpu in node.gpus] == [UNSUPPORTED] * 3
    reason, message = lack([node], model("m", memory=6))
    assert reason == "NoFreeGpus"
    assert f"3 cannot be used: 3 for {UNSUPPORTED}. Divide these GPUs into slices of a supported profile" in message


def test_too_much_compute_for_a_slice_is_called_so() -> None:
    busy = {"footprint": {"gpuMemory": "2Gi", "compute": "50%"}}
    reason, message = lack([mixed({"1g.10gb": 2, "3g.40gb": 1})], model("m", **busy))
    assert reason == "ComputeTooLarge"
    assert "m needs 50 % of a GPU's compute" in message
    assert "the most that one with its memory has is 42.8 %, of slice 0 of 3g.40gb of node a" in message
    assert "Lower footprint.compute" in message
    assert "add a larger slice, or a whole GPU" in message


def test_no_slice_counts_as_a_gpu() -> None:
    reason, message = lack([mixed({"3g.40gb": 2})], model("own", footprint={"gpus": 1, "gpuMemory": "5Gi"}))
    assert reason == "TooFewGpusOnANode"
    assert "the pool has slices of GPUs alone. Add a node with 1 whole GPU" in message
    assert "Declare footprint.gpuMemory" in lack([mixed({"3g.40gb": 2})], model("m", footprint=None))[1]


def test_what_shares_a_server_by_affinity_may_drop_it() -> None:
    other = {"affinity": [{"name": "a"}]}
    reason, message = lack([mixed({"1g.10gb": 4})], model("a", memory=6), model("b", memory=6, **other))
    assert reason == "GroupTooLarge"
    assert "a server has one slice, and the largest has 7.6 GiB, slice 0 of 1g.10gb of node a" in message
    assert "let fewer models share it (split the ensemble, or drop an affinity)" in message


def test_the_nearest_miss_is_named_by_its_slice() -> None:
    _, message = lack([mixed({"1g.10gb": 1})], model("m", memory=6), model("n", memory=5))
    assert "the nearest miss is slice 0 of 1g.10gb of node a with 1.6 GiB" in message


def test_an_ensemble_is_not_divided_over_slices() -> None:
    two = [model("a", memory=6), model("b", memory=6), ensemble("e", "a", "b")]
    assert plan([mixed({"1g.10gb": 4})], *two).servers == ()
    (server,) = plan([mixed({"1g.10gb": 4, "3g.40gb": 1})], *two).servers
    assert server.gpus == (MEDIUM,)


def test_models_with_gpus_of_their_own_take_no_slice() -> None:
    own = model("own", footprint={"gpus": 1, "gpuMemory": "5Gi"})
    assumed = model("assumed", footprint=None)
    assert {one.group for one in plan([single(7)], own, assumed).unplaced} == {"own", "assumed"}
    assert plan([single(7), gpu_node("b", 2)], own, assumed).unplaced == ()


def test_running_servers_keep_their_slices_and_lose_those_that_a_new_layout_does_not_have() -> None:
    here = facts([mixed({"1g.10gb": 2})], model("m", memory=6))
    running = replace(here, current=(CurrentServer("p-0", "a", (SMALL + 1,), {"m": (SMALL + 1,)}),))
    (server,) = pack_by_priority([running]).plan.pools[0].servers
    assert (server.name, server.gpus) == ("p-0", (SMALL + 1,))
    changed = replace(running, nodes=(mixed({"3g.40gb": 2}),))
    (server,) = pack_by_priority([changed]).plan.pools[0].servers
    assert server.gpus == (MEDIUM,)
    (unplaced,) = pack_by_priority([replace(running, nodes=(mixed({"1g.10gb.me": 0}, gpus=0),))]).plan.pools[0].unplaced
    assert unplaced.message


def test_slices_of_other_pods_are_withheld_by_their_kind() -> None:
    node = mixed({"1g.10gb": 2, "3g.40gb": 2}, gpus=1)
    (seen,) = reserved([node], [], {}, {"a/nvidia.com/mig-3g.40gb": {"n/train": 1}})
    assert {gpu.index: gpu.withheld_by for gpu in seen.gpus if gpu.withheld_by} == {MEDIUM + 1: "Pod n/train"}
    (seen,) = reserved([node], [], {}, {"a": {"n/train": 2}})
    assert {gpu.index: gpu.withheld_by for gpu in seen.gpus if gpu.withheld_by} == {0: "Pod n/train"}


def test_of_slices_that_are_lost_those_go_first_whose_servers_do_not_answer() -> None:
    devices: list[Device] = [("a", SMALL), ("a", SMALL + 1), ("a", 0)]
    use = GpuUse(assigned=devices, answering=[("a", SMALL + 1), ("a", 0)])
    (left,) = without_lost([mixed({"1g.10gb": 1, "3g.40gb": 1}, gpus=1)], use)
    assert [gpu.index for gpu in left.gpus] == [0, SMALL + 1, MEDIUM]


def test_the_hardware_of_a_node_is_noted_with_its_slices() -> None:
    for node in (mixed({"1g.10gb": 2, "3g.40gb": 1}, gpus=1), single(7)):
        noted = parse_hardware("a", hardware_text(node))
        assert noted is not None
        assert noted.gpus == node.gpus


def test_a_slice_that_is_lacking_is_requested_by_its_resource() -> None:
    here = facts([mixed({"1g.10gb": 1})], model("m", memory=6), model("n", memory=6))
    result = provision_fleet(pack_by_priority([here]), {here.pool: here}, {here.pool: 4})[here.pool]
    assert [(one.count, one.resource, one.products, one.hosts) for one in result.placeholders] == [
        (1, "nvidia.com/mig-1g.10gb", (A100,), ("a",))
    ]


NEEDS = st.tuples(st.integers(1, 40), st.integers(0, 60))


@given(st.lists(NEEDS, max_size=10), st.integers(0, 3), st.integers(0, 2), st.integers(0, 2))
def test_no_slice_is_overcommitted(needs: list[tuple[int, int]], small: int, medium: int, gpus: int) -> None:
    node = mixed({"1g.10gb": small, "3g.40gb": medium}, gpus=gpus)
    models = [
        model(f"m-{n}", footprint={"gpuMemory": f"{memory}Gi", "compute": f"{compute}%"})
        for n, (memory, compute) in enumerate(needs)
    ]
    devices = {gpu.index: gpu for gpu in node.gpus if not gpu.is_cpu}
    used: dict[int, list[Any]] = {}
    for server in plan([node], *models).servers if devices else ():
        assert len(server.gpus) == 1 or not any(map(is_slice, server.gpus))
        for placement in server.placements:
            for gpu in placement.gpus:
                used.setdefault(gpu, []).append(placement)
    for gpu, placements in used.items():
        assert sum(one.memory for one in placements) <= devices[gpu].memory * 8 // 10
        assert sum(one.compute for one in placements) <= devices[gpu].compute
        assert devices[gpu].memory < 81 * GIB
