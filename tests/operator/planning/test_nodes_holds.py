"""A number of GPUs that flaps, and a layout of slices that changes under servers: what stays, for how long."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import gpu_node, pool
from tests.operator.planning.test_nodes_slices import MEDIUM, SMALL, mixed

from argosy.planning.facts import Device, Node
from argosy.planning.nodes.last_reported import hardware_text, parse_hardware, with_last_reported
from argosy.planning.nodes.reported.holds import HOLD, CountHolds
from argosy.planning.nodes.reported.lost_gpus import GpuUse
from argosy.planning.nodes.reported.present import present
from argosy.planning.nodes.selection import unsteady

START = datetime(2026, 1, 1, tzinfo=UTC)
USED: tuple[Device, ...] = (("a", 0), ("a", 7))


def seconds(count: float) -> datetime:
    return START + timedelta(seconds=count)


def seen(*counts: tuple[float, int]) -> CountHolds:
    """Return the holds after a node reported these numbers of GPUs, by seconds."""
    holds = CountHolds()
    for at, count in counts:
        holds = holds.after([gpu_node("a", count)], seconds(at))
    return holds


def as_it_counts(holds: CountHolds, count: int, used: tuple[Device, ...] = USED, **use: tuple[Device, ...]) -> Node:
    """Return a node that reports so many GPUs, as it counts now."""
    (node,) = present([gpu_node("a", count)], used, lambda: GpuUse(used, **{"answering": (), **use}), holds)
    return node


def free(node: Node, used: tuple[Device, ...] = USED) -> list[int]:
    return [gpu.index for gpu in node.gpus if not gpu.withheld_by and (node.name, gpu.index) not in used]


def test_a_server_that_does_not_answer_keeps_its_gpu_while_the_count_may_come_back() -> None:
    node = as_it_counts(seen((0, 8), (10, 7)), 7)
    assert [gpu.index for gpu in node.gpus] == list(range(8))
    assert "fewer" in node.gpus[7].closed
    assert free(node) == [1, 2, 3, 4, 5]
    every: tuple[Device, ...] = tuple(("a", index) for index in range(8))
    later = seen((0, 8), (10, 7), (10 + HOLD.total_seconds(), 7))
    assert [len(as_it_counts(holds, 7, every).gpus) for holds in (seen((0, 8), (10, 7)), later)] == [8, 7]


def test_what_comes_back_gets_nothing_new_for_a_while() -> None:
    flapped = seen((0, 8), (10, 7), (20, 8))
    assert free(as_it_counts(flapped, 8)) == [1, 2, 3, 4, 5]
    assert flapped.next_end(seconds(20)) == seconds(20) + HOLD
    settled = seen((0, 8), (10, 7), (20, 8), (90, 8))
    assert free(as_it_counts(settled, 8)) == [1, 2, 3, 4, 5, 6]
    assert settled.next_end(seconds(90)) is None


def test_gpus_that_are_added_are_used_at_once_and_those_with_errors_are_not_held() -> None:
    assert free(as_it_counts(seen((0, 7), (10, 8)), 8), ()) == list(range(8))
    node = as_it_counts(seen((0, 8), (10, 7)), 7, failing=(("a", 7),))
    assert 7 not in [gpu.index for gpu in node.gpus]


def test_a_node_whose_count_goes_on_changing_says_so_until_it_is_steady() -> None:
    once = [(0, 8), (10, 7), (20, 8)]
    assert as_it_counts(seen(*once), 8).unsteady == ""
    flapping = [(0, 8), *((10 * at, 7 + at % 2) for at in range(2, 400))]
    (node,) = present([gpu_node("a", 7)], USED, lambda: GpuUse(USED, (), ()), seen(*flapping))
    assert node.unsteady == (
        "nvidia.com/gpu changed 256 times or more since 2026-01-01T00:00:20Z; 7 of 8 count until the number stays the "
        "same for a minute: see the log of its device plugin"
    )
    assert as_it_counts(seen(*flapping, (4060, 8)), 8).unsteady == ""


def test_a_flap_is_described_by_few_texts() -> None:
    counts = [(0, 8), *((5 * at, 7 + at % 2) for at in range(1, 500))]
    holds, texts = CountHolds(), set[str]()
    for at, count in counts:
        holds = holds.after([gpu_node("a", count)], seconds(at))
        texts.add(as_it_counts(holds, count).unsteady)
    assert len(texts) == 8


def test_a_pool_names_its_own_nodes_alone() -> None:
    mine = replace(gpu_node("a", labels={"gpu": "yes"}), unsteady="changed")
    assert unsteady(pool(nodeSelector={"gpu": "yes"}), [mine, replace(mine, name="b", labels={})]) == (mine,)


def test_a_node_that_cannot_be_read_begins_no_hold() -> None:
    holds = CountHolds().after([gpu_node("a", 8)], START)
    holds = holds.after([Node("a", (), stale=True, fault="labels")], seconds(5)).after([gpu_node("a", 8)], seconds(9))
    assert holds.next_end(seconds(9)) is None


@given(st.lists(st.integers(6, 8), min_size=1, max_size=12), st.sets(st.integers(0, 7), max_size=6))
def test_no_server_loses_a_gpu_by_a_count_that_flaps(counts: list[int], indexes: set[int]) -> None:
    used = tuple(("a", index) for index in sorted(indexes))
    holds = CountHolds().after([gpu_node("a", 8)], START)
    for at, count in enumerate(counts):
        holds = holds.after([gpu_node("a", count)], seconds(5 * at))
        node = as_it_counts(holds, count, used)
        assert indexes <= {gpu.index for gpu in node.gpus if not gpu.withheld_by}
        assert len(free(node, used)) <= max(0, min(counts[: at + 1]) - len(used))


def changed_layout() -> Node:
    """Return a node of three large slices on which servers have small ones."""
    before = mixed({"1g.10gb": 7})
    noted = parse_hardware("a", hardware_text(before, (SMALL, SMALL + 1)))
    assert noted is not None
    (node,) = with_last_reported([mixed({"3g.40gb": 2})], [noted])
    return node


def test_slices_of_a_former_layout_stay_with_the_servers_that_answer() -> None:
    used: tuple[Device, ...] = (("a", SMALL), ("a", SMALL + 1))
    (node,) = present([changed_layout()], used, lambda: GpuUse(used, answering=used[1:]))
    assert [(gpu.index, gpu.closed) for gpu in node.gpus] == [
        (SMALL + 1, "the node no longer offers it"),
        (MEDIUM, ""),
        (MEDIUM + 1, ""),
    ]
    (node,) = present([changed_layout()], used, lambda: GpuUse(used, answering=used, failing=used))
    assert [gpu.index for gpu in node.gpus] == [MEDIUM, MEDIUM + 1]


def test_a_former_slice_is_noted_for_as_long_as_its_server_has_it() -> None:
    node = changed_layout()
    (again,) = with_last_reported([replace(node, former=())], [noted_again(node)])
    assert [gpu.index for gpu in again.former] == [SMALL]


def noted_again(node: Node) -> Node:
    noted = parse_hardware("a", hardware_text(node, (SMALL,)))
    assert noted is not None
    return noted
