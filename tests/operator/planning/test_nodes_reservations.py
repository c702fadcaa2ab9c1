"""Whose each GPU is: other Pods', other pools', or free; nothing is lost, and nothing has two holders."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import gpu_node

from argosy.planning.facts import CurrentServer, Node
from argosy.planning.nodes.reservations import reserved, withheld


def holders(node: Node) -> dict[int, str]:
    return {gpu.index: gpu.withheld_by for gpu in node.gpus if gpu.withheld_by}


def test_gpus_of_pods_are_the_highest_that_no_one_of_ours_has() -> None:
    nodes = (gpu_node("a", 4), gpu_node("b", 4))
    first, second = reserved(
        nodes,
        [CurrentServer("p-0", "a", (3,))],
        {"n/q": [CurrentServer("q-0", "b", (0,))]},
        {"a": {"team/y": 1, "team/x": 1}},
    )
    assert holders(first) == {2: "Pod team/x", 1: "Pod team/y"}
    assert holders(second) == {0: "ServingPool n/q"}
    assert reserved(nodes, [], {}) == nodes


def test_more_gpus_of_pods_than_there_are_leave_what_runs() -> None:
    (node,) = reserved([gpu_node("a", 2)], [CurrentServer("p-0", "a", (1,))], {}, {"a": {"team/x": 9}})
    assert holders(node) == {0: "Pod team/x"}


def test_what_another_pool_does_not_need_may_be_requested() -> None:
    shrunken = CurrentServer("q-0", "a", (0, 1, 2), {"m": (1,), "cpu": ()})
    idle = CurrentServer("q-1", "a", (3,))
    (node,) = reserved([gpu_node("a", 5)], [], {"n/q": [shrunken, idle]})
    assert holders(node) == dict.fromkeys((0, 1, 2, 3), "ServingPool n/q")
    assert [gpu.index for gpu in node.gpus if gpu.reclaimable] == [0, 2]


def test_what_two_pools_have_goes_to_the_one_that_needs_it() -> None:
    needs, has = CurrentServer("s-0", "a", (0,), {"m": (0,)}), CurrentServer("s-0", "a", (0, 1), {"n": (1,)})
    (mine,) = reserved([gpu_node("a", 1)], [needs], {"n/q": [has]})
    (theirs,) = reserved([gpu_node("a", 1)], [has], {"n/q": [needs]})
    assert (holders(mine), holders(theirs)) == ({}, {0: "ServingPool n/q"})


def test_a_gpu_that_is_withheld_already_stays_so() -> None:
    (first,) = reserved([gpu_node("a", 2)], [], {}, {"a": {"team/x": 1}})
    (again,) = reserved([first], [], {"n/q": [CurrentServer("q-0", "a", (0, 1))]})
    assert holders(again) == {0: "ServingPool n/q", 1: "Pod team/x"}


indexes = st.frozensets(st.integers(0, 5), max_size=4)


@st.composite
def servers(draw: st.DrawFn) -> list[CurrentServer]:
    """Draw the servers of one pool; some have GPUs that the node no longer has, and some more than they need."""
    result, left = [], {0, 1, 2, 3, 4, 5}
    for number in range(draw(st.integers(0, 3))):
        gpus = draw(indexes) & left
        left -= gpus
        used = tuple(gpu for gpu in sorted(gpus) if draw(st.booleans()))
        result.append(CurrentServer(f"s-{number}", "a", tuple(sorted(gpus)), {"m": used} if used else {}))
    return result


@given(
    st.integers(1, 6),
    st.dictionaries(st.sampled_from(["n/p", "n/q", "n/r"]), servers(), min_size=2),
    st.dictionaries(st.sampled_from(["t/x", "t/y"]), st.integers(0, 3)),
)
def test_no_gpu_is_lost_and_none_is_for_two(
    count: int, pools: Mapping[str, list[CurrentServer]], pods: Mapping[str, int]
) -> None:
    """Each pool's view of one node: what it may plan with, no other pool that needs something may plan with too."""
    node = gpu_node("a", count)
    free_for: dict[int, list[str]] = {}
    for key, own in pools.items():
        others = {other: result for other, result in pools.items() if other != key}
        (seen,) = reserved([node], own, others, {"a": pods})
        assert [gpu.index for gpu in seen.gpus] == [gpu.index for gpu in node.gpus]
        reserved_value = withheld([seen])
        assert sum(reserved_value.values()) + sum(not gpu.withheld_by for gpu in seen.gpus) == count
        for pod, most in pods.items():
            assert reserved_value.get(f"Pod {pod}", 0) <= most
        for gpu in seen.gpus:
            if not gpu.withheld_by:
                free_for.setdefault(gpu.index, []).append(key)
    needed = {key: {gpu for item in result for gpu in item.needed} for key, result in pools.items()}
    for index, keys in free_for.items():
        for other, gpus in needed.items():
            assert index not in gpus or set(keys) <= {other}
