"""A node that tells of fewer GPUs than servers have there: what answers keeps its own."""

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import gpu_node

from argosy.planning.facts import CurrentServer, Gpu, Node, ServerReport
from argosy.planning.nodes.device_errors import failing
from argosy.planning.nodes.reported.lost_gpus import GpuUse, answering, without_lost
from argosy_agent.contract import FailureKind, LoadedModel, LoadState

GIB = 1 << 30


def left(node: Node, reserved: set[int], answering: set[int]) -> list[int]:
    (result,) = without_lost((node,), GpuUse({("a", item) for item in reserved}, {("a", item) for item in answering}))
    return [gpu.index for gpu in result.gpus]


def test_the_silent_server_loses_its_gpu_and_not_the_highest_one() -> None:
    assert left(gpu_node("a", 3), {0, 1, 2, 3}, {0, 2, 3}) == [0, 2, 3]


def test_a_gpu_with_device_errors_goes_before_all_others() -> None:
    reserved = {("a", number) for number in range(4)}
    (result,) = without_lost((gpu_node("a", 3),), GpuUse(reserved, reserved, {("a", 1)}))
    assert [gpu.index for gpu in result.gpus] == [0, 2, 3]


def test_a_server_whose_loads_meet_device_errors_is_the_one_that_lost_it() -> None:
    servers = [CurrentServer(f"p-{index}", "a", (index,), {f"m-{index}": (index,)}) for index in range(3)]
    broken = LoadedModel("m-1", 1, LoadState.UNAVAILABLE, "no device", FailureKind.DEVICE, attempts=1)
    wrong = LoadedModel("m-2", 1, LoadState.UNAVAILABLE, "no such file", FailureKind.LOAD)
    reports = [ServerReport("p-0", True), ServerReport("p-1", True, (broken,)), ServerReport("p-2", True, (wrong,))]
    assert failing(servers, reports) == {("a", 1)}


def test_a_gpu_that_no_server_has_goes_first() -> None:
    assert left(gpu_node("a", 3), {0, 1, 3}, {0, 3}) == [0, 1, 3]


def test_what_answers_keeps_its_gpus_though_the_node_counts_fewer() -> None:
    assert left(gpu_node("a", 2), {0, 1, 2, 3}, {1, 2, 3}) == [1, 2, 3]


def test_a_node_with_as_many_gpus_as_servers_count_stays_as_it_is() -> None:
    node = gpu_node("a", 4, nvlink=(frozenset(range(4)),))
    assert without_lost((node,), GpuUse({("a", 3)}, set())) == (node,)
    other = gpu_node("b", 1)
    assert without_lost((other,), GpuUse({("a", 3)}, set())) == (other,)


def test_slices_of_gpus_do_not_count_by_index() -> None:
    node = Node("a", (Gpu(0, GIB), Gpu(1, GIB, withheld_by="MIG (mig-1g.5gb)")))
    assert without_lost((node,), GpuUse({("a", 2)}, set())) == (node,)


def test_nvlink_joins_what_is_left() -> None:
    node = gpu_node("a", 3, nvlink=(frozenset(range(3)),))
    (result,) = without_lost((node,), GpuUse({("a", 0), ("a", 3)}, {("a", 3)}))
    assert result.nvlink == (frozenset({0, 1, 3}),)


def test_a_report_that_has_expired_is_no_answer() -> None:
    servers = [CurrentServer(name, "a", (index,)) for index, name in enumerate(("p-0", "p-1", "p-2"))]
    reports = [ServerReport("p-0", True), ServerReport("p-1", True, expired=True), ServerReport("p-2", False)]
    assert answering(servers, reports) == {("a", 0)}


@given(st.integers(1, 8), st.sets(st.integers(0, 9)), st.data())
def test_only_silent_servers_lose_gpus_and_no_more_are_left_than_exist(
    count: int, reserved: set[int], data: st.DataObject
) -> None:
    heard = {item for item in reserved if data.draw(st.booleans())}
    use = GpuUse({("a", item) for item in reserved}, {("a", item) for item in heard})
    (once,) = without_lost((gpu_node("a", count),), use)
    indexes = {gpu.index for gpu in once.gpus}
    assert heard <= indexes
    assert count <= len(indexes) <= max(count, len(heard))
