"""How much of each GPU the loaded models take, and which versions of a model have to be reloaded."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning.declared import GIB, gpu_node, model
from tests.operator.planning.migration.pool_states import Running, on, pool_state, running, running_with, server

from argosy.planning.demand.members import Members
from argosy.planning.migration.memory.changes import ModelChange, Priority, ServerChanges
from argosy.planning.migration.memory.occupancy import Occupant, memory_of, node_gpus, taken
from argosy.planning.migration.revisions import ModelRevision
from argosy_agent.contract import LoadedModel, LoadState, VersionSource

MEMBERS = Members.of("default/p", [model("m", memory=20)])
PLAN = server("p-0", on(model("m"), 1), gpus=(0, 1))


def test_versions_add_up_and_one_of_unknown_size_counts_as_declared() -> None:
    sizes = [VersionSource(memory=5 * GIB), VersionSource()]
    assert Occupant.of("m", sizes, (0,), MEMBERS) == Occupant("m", (0,), 25 * GIB)


def test_one_of_unknown_size_that_no_one_declares_may_take_all() -> None:
    assert Occupant.of("gone", [VersionSource()], (0,), MEMBERS).alone


def test_what_is_on_the_cpu_takes_no_gpu_memory() -> None:
    assert Occupant.of("gone", [VersionSource(memory=GIB)], (), MEMBERS) == Occupant("gone")


def test_one_that_is_alone_leaves_nothing_to_others() -> None:
    alone, shared = Occupant("m", (0,), 10, alone=True), Occupant("n", (0, 1), 20)
    assert (alone.on(0, 80), alone.on(1, 80)) == (10, 0)
    assert taken([alone, shared], {0: 80, 1: 80, 2: 80}) == {0: 100, 1: 20, 2: 0}


def test_indexes_of_a_revision_are_the_server_s_own() -> None:
    assert node_gpus(ModelRevision("m", {}, gpus=(0, 1)), (4, 6)) == (4, 6)


def test_a_gpu_that_the_server_has_no_longer_is_left_out() -> None:
    assert node_gpus(ModelRevision("m", {}, gpus=(1,)), (4,)) == ()


def test_a_cpu_slot_is_no_gpu() -> None:
    node = gpu_node("a", 2)
    assert memory_of(node) == {0: 80 * GIB, 1: 80 * GIB}
    assert memory_of(replace(node, gpus=tuple(replace(gpu, is_cpu=True) for gpu in node.gpus))) == {}


def changes(version: int, runs: Running, **spec: Any) -> ServerChanges:
    """Return the changes to a server once this version of m is declared."""
    m = model("m", version=version, **spec)
    plan = server("p-0", on(m, 1), gpus=(0, 1))
    state = pool_state([m], [plan], [runs])
    return ServerChanges.of(plan, state.observed.loaded_on("p-0"), state.targets["p-0"], state.members, state.observed)


def only(result: ServerChanges) -> ModelChange:
    (change,) = result.changes
    return change


def test_what_is_as_it_should_be_is_no_change() -> None:
    result = changes(1, running(PLAN, [model("m")]))
    assert result == ServerChanges({"m": Occupant("m", (1,), 20 * GIB)}, ())


def test_of_a_new_version_only_that_one_comes() -> None:
    result = changes(2, running(PLAN, [model("m")]))
    change = only(result)
    assert (change.coming, change.before, change.versions) == (
        Occupant("m", (1,), 20 * GIB),
        result.loaded["m"],
        frozenset({1}),
    )


def test_a_new_version_with_another_configuration_leaves_the_other_one_as_it_is() -> None:
    """Version 1 has the configuration that it was loaded with."""
    change = only(changes(2, running(PLAN, [model("m")]), maxBatchSize=8))
    assert (change.coming.memory, change.before) == (20 * GIB, Occupant("m", (1,), 20 * GIB))


def test_another_configuration_of_a_version_loads_it_again() -> None:
    change = only(changes(1, running(PLAN, [model("m")]), maxBatchSize=8))
    assert (change.coming.memory, change.before) == (20 * GIB, Occupant("m", (1,), 20 * GIB))


def test_a_revision_without_keys_is_reloaded() -> None:
    """Nothing tells that it is the one that should be there."""
    runs = running(PLAN, [model("m")])
    assert (
        only(changes(1, runs.holding(replace(runs.revisions["m"], reload_key="", config_key="")))).coming.memory
        == 20 * GIB
    )


def test_of_further_instances_those_come_that_are_not_there() -> None:
    result = changes(1, running(PLAN, [model("m")]), instances=3)
    change = only(result)
    assert (change.coming, change.inplace) == (Occupant("m", (1,), 40 * GIB), True)
    assert change.before == result.loaded["m"] == Occupant("m", (1,), 20 * GIB)


def test_further_instances_of_another_size_are_as_large_as_is_declared_now() -> None:
    change = only(changes(1, running(PLAN, [model("m")]), instances=2, memory=30))
    assert change.coming.memory == 30 * GIB
    assert change.before is not None
    assert change.before.memory == 30 * GIB


def test_a_new_version_with_more_instances_needs_full_memory() -> None:
    change = only(changes(2, running(PLAN, [model("m")]), instances=2))
    assert (change.coming.memory, change.inplace) == (60 * GIB, False)


def test_fewer_instances_are_no_change_and_take_memory_until_gone() -> None:
    plan = server("p-0", on(model("m", instances=3), 1), gpus=(0, 1))
    result = changes(1, running(plan, [model("m", instances=3)]))
    assert result == ServerChanges({"m": Occupant("m", (1,), 60 * GIB)}, ())


def test_another_window_takes_nothing() -> None:
    assert changes(1, running(PLAN, [model("m")]), batching={"maxQueueDelayMicroseconds": 100}).changes == ()


def test_further_instances_of_unknown_size_are_left_to_the_server() -> None:
    full: dict[str, Any] = {"footprint": {"gpus": 1}}
    plan = server("p-0", on(model("m", **full), 1), gpus=(0, 1))
    m = model("m", instances=2, **full)
    state = pool_state([m], [server("p-0", on(m, 1), gpus=(0, 1))], [running(plan, [model("m", **full)])])
    result = ServerChanges.of(
        state.plan.servers[0], state.observed.loaded_on("p-0"), state.targets["p-0"], state.members, state.observed
    )
    assert result.changes == ()


def test_another_size_is_no_change_and_counts_at_once() -> None:
    assert changes(1, running(PLAN, [model("m", memory=30)])).loaded["m"].memory == 20 * GIB


def test_what_is_on_another_gpu_counts_there() -> None:
    before = running(server("p-0", on(model("m"), 0), gpus=(0, 1)), [model("m")])
    change = only(changes(1, before))
    assert (change.coming.gpus, change.before) == ((1,), Occupant("m", (0,), 20 * GIB))


@pytest.mark.parametrize(
    ("state", "priority"),
    [
        (LoadState.LOADING, Priority.BEGUN),
        (LoadState.UNAVAILABLE, Priority.FAILED),
        (LoadState.UNLOADING, Priority.UPDATE),
    ],
)
def test_what_the_server_says_of_the_version_gives_the_order(state: LoadState, priority: Priority) -> None:
    runs = running(PLAN, [model("m")]).reported(others=[LoadedModel("m", 2, state)])
    assert only(changes(2, runs)).priority is priority


def test_what_failed_and_has_nothing_loaded_is_tried_as_new() -> None:
    runs = running_with(PLAN, {}).reported(others=[LoadedModel("m", 1, LoadState.UNAVAILABLE)])
    assert only(changes(1, runs)).priority is Priority.NEW
