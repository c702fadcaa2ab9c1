"""The bound of a plan's GPUs: by kind of GPU, by size, and never above what a plan takes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import gpu_node, lone
from tests.properties import examples

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.packing.lower_bound import fewest_gpus, lower_bound
from argosy.planning.packing.priorities import pack_by_priority
from argosy.planning.requirements import NOTHING, NodeRequirements

POOL = PoolKey("n/p")
GIB = 1 << 30


def bound(nodes: list[Node], *groups: Group) -> int:
    return lower_bound(PoolFacts(POOL, tuple(nodes), groups))


def of(product: str, name: str, count: int, memory: int = 80) -> Node:
    return replace(Node(name, tuple(Gpu(index, memory * GIB) for index in range(count))), product=product)


def on(product: str, name: str, memory: int) -> Group:
    requires = NodeRequirements(products=frozenset({product})) if product else NOTHING
    return Group(name, (Demand(name, 1, Footprint(memory * GIB, 10), requires=requires),))


def test_what_needs_another_kind_of_gpu_takes_one_of_its_own() -> None:
    nodes = [of("A100", "a", 2), of("H200", "b", 2)]
    assert bound(nodes, on("A100", "x", 10), on("H200", "y", 10)) == 2
    assert bound(nodes, on("A100", "x", 10), on("", "y", 10)) == 1


def test_two_models_larger_than_half_a_gpu_share_none() -> None:
    assert bound([gpu_node("a", 4)], *(lone(f"m{n}", Footprint(36 * GIB, 10)) for n in range(3))) == 3


def test_the_memory_of_the_largest_gpus_counts_first() -> None:
    nodes = [of("big", "a", 1, 100), of("small", "b", 4, 25)]
    assert bound(nodes, *(on("", f"m{n}", 10) for n in range(10))) == 2


@pytest.mark.parametrize(
    ("need", "gpus"), [(Footprint(10 * GIB, 0, 2), 2), (Footprint(10 * GIB, 10), 1), (Footprint(), 0)]
)
def test_full_gpus_and_parts_of_them_count(need: Footprint, gpus: int) -> None:
    assert bound([gpu_node("a", 4)], lone("x", need)) == gpus


@given(
    st.lists(
        st.tuples(
            st.integers(1, 70), st.integers(1, 900), st.integers(1, 3), st.sampled_from(["", "", "A100", "H200"])
        ),
        max_size=12,
    )
)
@examples(25)
def test_no_plan_takes_fewer(models: list[tuple[int, int, int, str]]) -> None:
    nodes = (of("A100", "a", 3), of("H200", "b", 3, 141), of("A100", "c", 2))
    groups = tuple(
        replace(
            on(product, f"m{n}", memory),
            replicas=replicas,
            demands=tuple(
                replace(one, replicas=replicas, footprint=Footprint(memory * GIB, compute))
                for one in on(product, f"m{n}", memory).demands
            ),
        )
        for n, (memory, compute, replicas, product) in enumerate(models)
    )
    facts = PoolFacts(POOL, nodes, groups)
    plan = pack_by_priority([facts]).plan
    assert fewest_gpus(plan, [facts]) <= plan.gpus_used
