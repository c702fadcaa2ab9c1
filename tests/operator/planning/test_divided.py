"""Instances that no GPU holds together: divided evenly among GPUs of one server, and rendered as they are placed."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, facts_of, gpu_node, lone, model, pool
from tests.properties import examples

from argosy.api.servingpool import RuntimeName
from argosy.api.values.identity import PoolKey
from argosy.planning.demand.divided import with_divided
from argosy.planning.demand.members import Members
from argosy.planning.explanation.remedies.find import THOROUGH, find_remedies
from argosy.planning.explanation.remedies.remedy import RemedyKind
from argosy.planning.facts import Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.nodes.slices import first_index
from argosy.planning.packing.lower_bound import lower_bound
from argosy.planning.packing.priorities import pack_by_priority
from argosy.planning.packing.solve import pack
from argosy.planning.plan import Placement, PoolPlan
from argosy.render.config.model_config import local_devices, model_config

GIB = 1 << 30


def planned(nodes: list[Node], *members: Any, **limits: Any) -> PoolPlan:
    (facts,) = facts_of([pool(**limits), *members], nodes)
    return pack(facts)


def placements(plan: PoolPlan, name: str = "m") -> list[Placement]:
    return [placement for server in plan.servers for placement in server.placements if placement.model == name]


@pytest.mark.parametrize("limits", [{}, {"maxServers": 3}])
@pytest.mark.parametrize(
    ("instances", "memory", "gpus", "on_one"),
    [(2, 40, 2, 1), (4, 30, 2, 2), (3, 40, 3, 1), (6, 20, 2, 3), (2, 30, 1, 2), (1, 60, 1, 1)],
)
def test_instances_take_the_fewest_gpus_that_hold_them(
    limits: dict[str, Any], instances: int, memory: int, gpus: int, on_one: int
) -> None:
    plan = planned([gpu_node("a", 4)], model("m", memory=memory, instances=instances), **limits)
    (placement,) = placements(plan)
    assert (len(placement.gpus), placement.instances) == (gpus, on_one)
    assert placement.memory == on_one * memory * GIB
    assert len(plan.servers) == 1
    assert plan.gpus_used == gpus


def test_compute_divides_instances_too() -> None:
    spec = {"footprint": {"gpuMemory": "1Gi", "compute": "60%"}}
    (placement,) = placements(planned([gpu_node("a", 2)], model("m", instances=2, **spec)))
    assert (placement.gpus, placement.instances, placement.compute) == ((0, 1), 1, 600)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"instances": 2, "memory": 70}, "GpuTooSmall"),
        ({"instances": 5, "memory": 40}, "TooFewGpusOnANode"),
        ({"instances": 2, "memory": 40, "modelFormat": {"name": "vllm"}}, "GpuTooSmall"),
        ({"memory": 40, "instanceGroups": [{"kind": "KIND_GPU", "count": 2}]}, "GpuTooSmall"),
    ],
)
def test_what_cannot_be_divided_is_too_large(spec: dict[str, Any], reason: str) -> None:
    (unplaced,) = planned([gpu_node("a", 4)], model("m", **spec)).unplaced
    assert unplaced.reason == reason


def test_a_server_has_no_more_gpus_than_it_may() -> None:
    (unplaced,) = planned([gpu_node("a", 4)], model("m", memory=40, instances=2), maxGpusPerServer=1).unplaced
    assert unplaced.reason == "ServerTooSmall"
    assert unplaced.message == (
        "m has 2 instances, which no GPU holds together. Divided evenly they need 40 GiB of each of 2 GPUs on one "
        "server, and maxGpusPerServer lets it have 1. Raise maxGpusPerServer to 2, or lower instances to 1 and raise "
        "minReplicas."
    )


def explained(nodes: list[Node], *members: Any, **limits: Any) -> tuple[str, list[str]]:
    """Return why the only one that fits nowhere does so, and the remedies that change a setting."""
    (facts,) = facts_of([pool(**limits), *members], nodes)
    plan = pack_by_priority([facts]).plan
    (unplaced,) = plan.pools[0].unplaced
    remedies = find_remedies([facts], plan, THOROUGH).get((facts.pool, unplaced.group), ())
    return unplaced.message, [one.text for one in remedies if one.kind is RemedyKind.SETTING]


def test_instances_that_no_number_of_gpus_holds_name_how_many_would_fit() -> None:
    message, remedies = explained([gpu_node("a", 4)], model("m", memory=40, instances=5))
    assert message == (
        "m has 5 instances, which no GPU holds together. Divided evenly they need 40 GiB of each of 5 GPUs on one "
        "node; node a has the most that large, 4. Lower instances to 4 and raise minReplicas, or add a node with 5."
    )
    assert remedies == ["instances 5 → 4"]
    assert not planned([gpu_node("a", 4)], model("m", memory=40, instances=4)).unplaced


def test_a_limit_of_gpus_keeps_instances_from_being_divided_and_is_raised() -> None:
    limited = ([gpu_node("a", 4)], model("m", memory=40, instances=3))
    assert explained(*limited, maxGpusPerServer=1)[1] == ["the pool's maxGpusPerServer 1 → 3", "instances 3 → 1"]
    assert not planned(*limited, maxGpusPerServer=3).unplaced


def test_where_gpus_are_taken_fewer_instances_are_named() -> None:
    others = [model(f"big{at}", memory=60, priority=5) for at in range(2)]
    message, remedies = explained([gpu_node("a", 3)], *others, model("m", memory=30, instances=4))
    assert "m needs 60 GiB of each of 2 GPUs" in message
    assert remedies == ["instances 4 → 2"]


def test_an_instance_that_fits_no_gpu_is_what_the_message_is_about() -> None:
    message, remedies = explained([gpu_node("a", 4)], model("m", memory=70, instances=2))
    assert message.startswith("each instance of m needs 70 GiB on one GPU; the largest usable is 64 GiB on node a")
    assert "instances 2" not in "".join(remedies)


def test_a_server_has_one_slice_so_nothing_is_divided_among_slices() -> None:
    first = first_index("1g.10gb", single=False) or 0
    slices = Node("a", tuple(Gpu(first + at, 10 * GIB) for at in range(7)))
    message, remedies = explained([slices], model("m", memory=6, instances=2))
    assert "node a has the most that large, 0. Lower instances to 1" in message
    assert remedies == ["instances 2 → 1"]


def test_equal_memory_of_another_number_of_instances_is_explained_by_itself() -> None:
    plan = planned([gpu_node("a", 1)], model("m", memory=50, instances=2), model("n", memory=100))
    of_m, of_n = (one.message for one in plan.unplaced)
    assert "m has 2 instances" in of_m
    assert of_n.startswith("n needs 100 GiB on one GPU")


def test_where_gpus_are_taken_it_names_the_shares() -> None:
    plan = planned([gpu_node("a", 2)], model("big", memory=60, priority=5), model("m", memory=40, instances=2))
    (unplaced,) = plan.unplaced
    assert unplaced.message.endswith(
        "m needs 40 GiB of each of 2 GPUs for one server; node a has the most with that much free, 1. Lower instances, "
        "remove or shrink a model, or add a GPU."
    )


def test_an_ensemble_has_a_divided_model_with_the_others_on_one_server() -> None:
    parts = [model("m", memory=40, instances=2), model("n", memory=20)]
    plan = planned([gpu_node("a", 1), gpu_node("b", 3)], *parts, ensemble("e", "m", "n"))
    assert [(server.node, server.gpus) for server in plan.servers] == [("b", (0, 1))]


def test_a_divided_model_stays_where_it_is() -> None:
    nodes = [gpu_node("a", 4)]
    (facts,) = facts_of([pool(), model("m", memory=40, instances=2), model("n", memory=60)], nodes)
    plan = pack(facts)
    assert pack(replace(facts, current=plan.current)).servers == plan.servers


@pytest.mark.parametrize("runtime", RuntimeName)
def test_the_configuration_agrees_with_the_plan(runtime: RuntimeName) -> None:
    declared = model("m", memory=20, instances=6)
    small = [model(f"s{at}", memory=50) for at in range(2)]
    plan = planned([gpu_node("a", 4)], declared, *small)
    server = next(server for server in plan.servers if any(one.model == "m" for one in server.placements))
    (placement,) = placements(plan)
    (group,) = model_config(declared, local_devices(placement, server, runtime), [1]).instance_group
    assert (group.Kind.Name(group.kind), group.count, list(group.gpus)) == ("KIND_GPU", 3, [0, 1])


def test_files_count_with_their_share_of_a_gpu() -> None:
    declared, here = model("m", memory=40, instances=2), pool()
    (placement,) = placements(planned([gpu_node("a", 4)], declared))
    members = Members.of(here.key, [here, declared])
    assert [source.memory for source in members.sources(placement, "a").values()] == [40 * GIB]


@st.composite
def divided_pools(draw: st.DrawFn) -> PoolFacts:
    """Draw pools in which some models have more instances than a GPU holds."""
    nodes = tuple(gpu_node(f"n{at}", draw(st.integers(1, 4)), 10) for at in range(draw(st.integers(1, 3))))
    groups: list[Group] = []
    for at in range(draw(st.integers(1, 5))):
        instances, one = draw(st.integers(1, 4)), draw(st.integers(1, 9))
        need = Footprint(instances * one * GIB, instances * draw(st.sampled_from([0, 200])))
        group = lone(f"m{at}", need, draw(st.integers(1, 2)), instances)
        groups.append(with_divided(group, {group.name}, nodes, 0, None))
    return PoolFacts(PoolKey("n/p"), nodes, tuple(groups), 0, max_servers=draw(st.sampled_from([None, None, 3])))


@given(divided_pools())
@examples(50)
def test_every_gpu_has_its_share_and_none_too_much(facts: PoolFacts) -> None:
    plan = pack(facts)
    needs = {demand.model: demand.footprint for group in facts.groups for demand in group.demands}
    used: Counter[tuple[str, int]] = Counter()
    for server in plan.servers:
        assert set(server.gpus) == {gpu for placement in server.placements for gpu in placement.gpus}
        for placement in server.placements:
            assert len(set(placement.gpus)) == len(placement.gpus) == needs[placement.model].shares
            for gpu in placement.gpus:
                used[server.node, gpu] += placement.memory
    assert max(used.values(), default=0) <= 10 * GIB
    assert pack(replace(facts, nodes=facts.nodes[::-1], groups=facts.groups[::-1])) == plan
    assert pack(replace(facts, current=plan.current)).servers == plan.servers
    assert plan.unplaced or lower_bound(facts) <= plan.gpus_used
