"""Placeholders ask for the nodes that a pool lacks: as few and as small as the packer would use."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, facts_of, gpu_node, linked_node, lone, model, pool
from tests.properties import examples

from argosy.api import Resource
from argosy.planning.facts import Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.nodes.cordons import with_cordons
from argosy.planning.packing.priorities import pack_by_priority
from argosy.planning.provisioning.exclusions import MOST_NAMED
from argosy.planning.provisioning.fleet import provision_fleet, with_waits
from argosy.planning.provisioning.placeholders import Placeholder, Provisioning
from argosy.planning.spreading import HOSTNAME, ZONE

SMALL, LARGE = "NVIDIA-A10", "NVIDIA-H100-80GB-HBM3"


def node(name: str, gpus: int = 1, memory: int = 80, product: str = LARGE, **state: Any) -> Node:
    """Return a node of a known product."""
    return gpu_node(name, gpus, memory, product=product, labels={HOSTNAME: name}, **state)


def provisioned(facts: PoolFacts, most: int = 16) -> Provisioning:
    """Return the placeholders of a pool that is packed by priority."""
    ranked = pack_by_priority([facts])
    return provision_fleet(ranked, {facts.pool: facts}, {facts.pool: most})[facts.pool]


def requested(
    resources: Sequence[Resource], nodes: Sequence[Node], most: int = 16
) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return count, GPUs and products of each placeholder of the pool `p`."""
    (facts,) = facts_of(resources, nodes)
    return [(one.count, one.gpus, one.products) for one in provisioned(facts, most).placeholders]


def test_what_is_placed_asks_for_nothing() -> None:
    assert requested([pool(), model("m")], [node("a")]) == []


def test_unplaced_models_ask_for_as_few_gpus_as_they_would_share() -> None:
    models = [model(f"m-{n}", memory=30) for n in range(6)]
    assert requested([pool(), *models], [node("a")]) == [(2, 1, (LARGE,))]


def test_the_smallest_type_that_has_enough_memory_is_preferred_and_larger_ones_would_do() -> None:
    nodes = [node("a", memory=80), node("b", memory=24, product=SMALL)]
    full = [model("x", memory=64, priority=1), model("y", memory=19, priority=1)]
    assert requested([pool(), *full, model("m", memory=10)], nodes) == [(1, 1, (SMALL, LARGE))]
    assert requested([pool(), *full, model("m", memory=40)], nodes) == [(1, 1, (LARGE,))]


def test_a_model_that_is_separated_from_all_that_runs_asks_for_a_node() -> None:
    apart = {"antiAffinity": [{"name": "m", "level": "Node"}]}
    assert requested([pool(), model("m", priority=1), model("n", **apart)], [node("a", 2)]) == [(1, 1, (LARGE,))]


def test_a_divided_model_asks_for_all_of_its_gpus() -> None:
    busy = model("x", memory=60, priority=1)
    assert requested([pool(), busy, model("m", memory=40, instances=2)], [node("a", 2)]) == [(1, 2, (LARGE,))]


def test_models_on_several_gpus_ask_for_them_on_one_node_with_nvlink() -> None:
    nodes = [replace(linked_node("a", 4), product=LARGE), node("b", 8, memory=24, product=SMALL)]
    split = {"footprint": {"gpus": 4, "gpuMemory": "10Gi"}, "parallelism": {"tensor": 4}}
    resources = [pool(), *(model(name, modelFormat={"name": "vllm"}, **split) for name in ("m", "n"))]
    assert requested(resources, nodes) == [(1, 4, (LARGE,))]


def test_what_is_too_large_for_every_type_asks_for_nothing() -> None:
    assert requested([pool(), model("m", memory=100)], [node("a")]) == []


def test_replicas_apart_and_those_that_scaling_adds_ask_too() -> None:
    assert requested([pool(), model("m", replicas=3)], [node("a")]) == [(2, 1, (LARGE,))]
    scaled = lone("m", Footprint(memory=20 * GIB), replicas=4)
    (facts,) = facts_of([pool(), model("m")], [node("a")])
    (placeholder,) = provisioned(replace(facts, groups=(replace(scaled, minimum=1),))).placeholders
    assert placeholder.count == 3


def test_a_pool_without_a_node_asks_for_what_is_certain_of_any_node() -> None:
    models = [model(f"m-{n}", memory=30) for n in range(6)]
    assert requested([pool(), *models], []) == [(1, 1, ())]
    split = {"footprint": {"gpus": 2}, "parallelism": {"tensor": 2}, "modelFormat": {"name": "vllm"}}
    assert requested([pool(), *models, model("s", **split)], []) == [(1, 1, ()), (1, 2, ())]


def test_nodes_without_a_product_are_requested_without_one() -> None:
    assert requested([pool(), *(model(f"m-{n}", memory=60) for n in range(2))], [gpu_node("a")]) == [(1, 1, ())]


def test_labels_that_models_require_are_requested_apart() -> None:
    models = [model(f"m-{n}", memory=30, nodeSelector={"disk": disk}) for n, disk in enumerate(("ssd", "ssd", "hdd"))]
    (facts,) = facts_of([pool(), *models], [node("a")])
    labels = [(one.count, one.labels, one.products) for one in provisioned(facts).placeholders]
    assert labels == [(1, (("disk", "hdd"),), (LARGE,)), (1, (("disk", "ssd"),), (LARGE,))]


def test_products_that_a_model_requires_are_requested_though_no_node_has_them() -> None:
    footprint = {"gpuMemory": "10Gi", "gpuType": {"products": [SMALL]}}
    assert requested([pool(), model("m", footprint=footprint)], [node("a")]) == [(1, 1, (SMALL,))]
    assert requested([pool(), model("m", footprint=footprint)], []) == [(1, 1, (SMALL,))]
    newer = {"gpuMemory": "10Gi", "gpuType": {"computeCapability": ">= 9.0"}}
    nodes = [node("a", compute_capability="9.0"), node("b", 1, 24, SMALL, compute_capability="8.6")]
    full = [model("x", memory=64, priority=1), model("y", memory=19, priority=1)]
    assert requested([pool(), *full, model("m", footprint=newer)], nodes) == [(1, 1, (LARGE,))]


def test_a_pool_on_cpus_asks_for_gpus_only_for_what_needs_several() -> None:
    cpus = Node("c", (Gpu(0, 4 * GIB, is_cpu=True),))
    assert requested([pool(), model("m", memory=30)], [cpus]) == []
    split = {"footprint": {"gpus": 2}, "parallelism": {"tensor": 2}, "modelFormat": {"name": "vllm"}}
    assert requested([pool(), model("m", **split)], [cpus]) == [(1, 2, ())]


def test_a_suspended_pool_and_one_that_may_have_no_more_servers_ask_for_nothing() -> None:
    models = [model(f"m-{n}", memory=60) for n in range(3)]
    assert requested([pool(suspend=True), *models], [node("a")]) == []
    assert requested([pool(maxServers=1), *models], [node("a")]) == []
    assert requested([pool(maxServers=2), *models], [node("a")]) == [(1, 1, (LARGE,))]
    assert requested([pool(maxGpusPerServer=0), *models], []) == []


@pytest.mark.parametrize(("holder", "expected"), [("build b", []), ("Pod n/train", [(1, 1, (LARGE,))])])
def test_a_gpu_that_a_build_will_give_back_is_waited_for(holder: str, expected: list[Any]) -> None:
    held = node("a")
    held = replace(held, gpus=(replace(held.gpus[0], withheld_by=holder),))
    assert requested([pool(), model("m")], [held]) == expected


def test_what_other_pools_are_about_to_give_up_is_waited_for() -> None:
    (facts,) = facts_of([pool(), model("m")], [node("a")])
    reclaimable = replace(facts.nodes[0].gpus[0], withheld_by="ServingPool n/q", reclaimable=True)
    facts = replace(facts, nodes=(replace(facts.nodes[0], gpus=(reclaimable,)),))
    assert pack_by_priority([facts]).plan.pools[0].unplaced[0].reason == "Pending"
    assert provisioned(facts).placeholders == ()


def test_a_cordoned_gpu_is_replaced_on_another_node() -> None:
    (cordoned,) = with_cordons([node("a")], {("a", 0)})
    (facts,) = facts_of([pool(), model("m")], [cordoned])
    assert provisioned(facts).placeholders[0].hosts == ("a",)


def test_placeholders_never_go_to_a_node_that_is_planned() -> None:
    nodes = [node("a", 2), node("b"), node("c", memory=24, product=SMALL)]
    (facts,) = facts_of([pool(), *(model(f"m-{n}", memory=60) for n in range(4))], nodes)
    (placeholder,) = provisioned(facts).placeholders
    assert placeholder.hosts == ("a", "b")


def running(nodes: int, models: int, **more: Any) -> PoolFacts:
    """Return a pool whose nodes have a model each, as it runs, and models that have no place."""
    resources = [pool(), *(model(f"m-{n:05}", memory=60, priority=models - n, **more) for n in range(models))]
    (facts,) = facts_of(resources, [node(f"n-{at:05}") for at in range(nodes)])
    plan = pack_by_priority([facts]).plan.pools[0]
    return replace(facts, current=plan.current)


def test_nodes_whose_gpus_pods_have_are_not_named_however_many_there_are() -> None:
    facts = running(300, 302)
    (placeholder,) = provisioned(facts).placeholders
    assert (placeholder.count, placeholder.hosts) == (2, ())
    held = [replace(one, gpus=(replace(one.gpus[0], withheld_by="Pod n/train"),)) for one in facts.nodes]
    (placeholder,) = provisioned(replace(facts, nodes=tuple(held), current=())).placeholders
    assert placeholder.hosts == ()


def test_nodes_with_free_gpus_are_named_and_where_there_are_too_many_nothing_is_requested() -> None:
    apart = {"antiAffinity": [{"name": "x", "level": "Node"}]}

    required = {"topologySpread": [{"topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}]}

    def full(nodes: int) -> tuple[PoolFacts, Provisioning]:
        x = model("x", memory=2, replicas=nodes, minReplicas=nodes, priority=1, **required)
        (facts,) = facts_of([pool(), x, model("m", memory=60, **apart)], [node(f"n-{at:02}", 2) for at in range(nodes)])
        facts = replace(facts, current=pack_by_priority([facts]).plan.pools[0].current)
        return facts, provisioned(facts)

    _, few = full(MOST_NAMED)
    assert len(few.placeholders[0].hosts) == MOST_NAMED
    facts, many = full(MOST_NAMED + 1)
    assert (many.placeholders, many.unnamed) == ((), {"m"})
    (unplaced,) = with_waits(pack_by_priority([facts]), {facts.pool: many}).plan.pools[0].unplaced
    assert "It has no placeholder, since more than 64 nodes have GPUs free" in unplaced.message


def test_nodes_that_the_labels_keep_out_are_not_named() -> None:
    resources = [pool(), model("m", memory=60, replicas=3, nodeSelector={"disk": "ssd"})]
    ssd = replace(node("b"), labels={HOSTNAME: "b", "disk": "ssd"})
    (facts,) = facts_of(resources, [node("a"), ssd])
    assert provisioned(facts).placeholders[0].hosts == ("b",)


def test_their_number_is_limited_by_priority() -> None:
    models = [model(f"m-{n}", memory=60, priority=n) for n in range(5)]
    (facts,) = facts_of([pool(), *models], [node("a")])
    result = provisioned(facts, most=2)
    assert [(one.count, one.groups) for one in result.placeholders] == [(2, ("m-2", "m-3"))]
    assert result.beyond == {"m-0", "m-1"}
    assert provisioned(facts, most=0) == Provisioning()


def test_the_messages_name_the_placeholder() -> None:
    (facts,) = facts_of([pool(), *(model(f"m-{n}", memory=60) for n in range(4))], [node("a")])
    ranked = pack_by_priority([facts])
    result = provision_fleet(ranked, {facts.pool: facts}, {facts.pool: 2})
    (placeholder,) = result[facts.pool].placeholders
    messages = [one.message for one in with_waits(ranked, result).plan.pools[0].unplaced]
    assert sorted(message.rpartition(". It ")[2] for message in messages) == [
        "has no placeholder, since the pool may have no more: raise its nodeAutoscaling.maxPlaceholders.",
        *[f"waits for a node: placeholder {placeholder.name} asks for 1 GPU of {LARGE}."] * 2,
    ]


def test_names_are_of_the_pool_and_what_they_request() -> None:
    def name(pool_name: str, *models: Resource) -> str:
        (facts,) = facts_of([pool(pool_name), *models], [])
        return provisioned(facts).placeholders[0].name

    split = {"footprint": {"gpus": 2}, "parallelism": {"tensor": 2}, "modelFormat": {"name": "vllm"}}
    one, two = model("m", poolRef={"name": "p" * 60}), model("m", poolRef={"name": "p" * 60}, **split)
    names = {name("p", model("m")), name("p" * 60, one), name("p" * 60, two)}
    assert len(names) == 3
    assert all(len(one) < 63 for one in names)


NEEDS = st.builds(Footprint, st.integers(1, 70).map(lambda gib: gib * GIB), st.integers(0, 900))


@examples(20)
@given(
    st.lists(st.tuples(NEEDS, st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=8),
    st.lists(st.sampled_from([(24, SMALL), (80, LARGE)]), min_size=1, max_size=3),
    st.integers(0, 6),
    st.randoms(),
)
def test_on_the_nodes_that_are_requested_everything_is_placed(
    needs: list[tuple[Footprint, int, int]], kinds: list[tuple[int, str]], most: int, random: Any
) -> None:
    nodes = [node(f"n-{at}", 1, memory, product) for at, (memory, product) in enumerate(kinds)]
    (facts,) = facts_of([pool()], nodes)
    groups = [
        Group(f"g-{at}", lone(f"g-{at}", need, replicas).demands, replicas, priority=priority)
        for at, (need, replicas, priority) in enumerate(needs)
    ]
    facts = replace(facts, groups=tuple(groups))
    result = provisioned(facts, most)
    assert sum(one.count for one in result.placeholders) <= most
    random.shuffle(groups)
    random.shuffle(nodes)
    assert provisioned(replace(facts, groups=tuple(groups), nodes=tuple(nodes)), most) == result
    if most and not result.beyond:
        grown = [*facts.nodes, *(new for one in result.placeholders for new in _nodes_of(one))]
        before, after = (pack_by_priority([replace(facts, nodes=tuple(some))]) for some in (facts.nodes, grown))
        lost = {one.group for one in after.plan.pools[0].unplaced}
        assert lost <= {one.group for one in before.plan.pools[0].unplaced if one.reason == "GpuTooSmall"}


def _nodes_of(placeholder: Placeholder) -> list[Node]:
    """Return the nodes that an autoscaler adds for a placeholder: of the smallest product, a node for each Pod."""
    memory = {SMALL: 24, LARGE: 80}[placeholder.products[0]]
    names = (f"{placeholder.name}-{n}" for n in range(placeholder.count))
    return [node(name, placeholder.gpus, memory, placeholder.products[0]) for name in names]


ZONED = {"topologySpread": [{"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]}


def zoned(name: str, zone: str) -> Node:
    return replace(node(name), labels={HOSTNAME: name, ZONE: zone})


def test_a_spread_replica_asks_for_a_node_of_a_zone_that_may_have_it() -> None:
    """A node of zone x would never do, so an autoscaler would add one after another."""
    other = model("other", memory=60, nodeSelector={ZONE: "y"}, priority=9)
    resources = [pool(), other, model("m", memory=60, replicas=2, **ZONED)]
    (facts,) = facts_of(resources, [zoned("a", "x"), zoned("b", "y")])
    (placeholder,) = provisioned(facts).placeholders
    assert (placeholder.count, placeholder.domains) == (1, ((ZONE, ("x",)),))
    (came,) = facts_of(resources, [zoned("a", "x"), zoned("b", "y"), zoned("c", "y")])
    assert provisioned(came) == Provisioning()


def test_a_spread_replica_without_a_node_that_has_the_label_asks_for_one() -> None:
    (facts,) = facts_of([pool(), model("m", replicas=2, **ZONED)], [node("a")])
    (placeholder,) = provisioned(facts).placeholders
    assert (placeholder.count, placeholder.domains) == (2, ((ZONE, ()),))
    assert provisioned(facts).beyond == frozenset()
