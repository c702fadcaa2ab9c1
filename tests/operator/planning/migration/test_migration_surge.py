"""A new revision without memory next to the old one: it surges replica by replica, later, or not at all."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, model
from tests.operator.planning.migration.pool_states import Running, on, pool_state, running, server

from argosy.api import InferenceModel, Resource
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.changes.rollback import replaced_at_once
from argosy.planning.migration.changes.surge import Surges, surges
from argosy.planning.migration.pool_migration import budgets_of, occupants_of
from argosy.planning.plan import ServerPlan

OLD, NEW = model("m", memory=50), model("m", version=2, memory=50)
FIRST, SECOND = server("p-0", on(NEW, 0)), server("p-1", on(NEW, 0), node="b")


def surges_of(
    declared: Sequence[Resource],
    planned: Sequence[ServerPlan],
    runs: Sequence[Running],
    begun: Sequence[Binding] = (),
) -> Surges:
    state = pool_state(declared, planned, runs)
    return surges(state, budgets_of(state, occupants_of(state)), begun)


def test_what_fits_alongside_the_old_one_surges() -> None:
    small = model("m", version=2, memory=30)
    assert surges_of([small], [server("p-0", on(small, 0))], [running(FIRST, [OLD])]) == Surges()


def test_the_only_replica_keeps_its_revision_and_says_why() -> None:
    changes = surges_of([NEW], [FIRST], [running(FIRST, [OLD])])
    assert (changes.recreated, changes.deferred) == (set(), {})
    assert changes.stuck == {
        ("p-0", "m"): (
            "version 2 does not fit next to version 1, which goes on serving: it needs 50 GiB on GPU 0 of node a, "
            "where 30 GiB are free next to all that is loaded. Raise minReplicas to 2 until it has changed, so that "
            "one replica changes while the other serves; or set rollout.strategy to Recreate, which unloads the old "
            "one first; or lower footprint.gpuMemory"
        )
    }


def test_a_new_configuration_of_the_same_version_is_called_that() -> None:
    edited = model("m", memory=50, maxBatchSize=8)
    planned = server("p-0", on(edited, 0))
    (why,) = surges_of([edited], [planned], [running(planned, [OLD])]).stuck.values()
    assert why.startswith(
        "the new configuration of version 1 does not fit next to the one that serves: it needs 50 GiB"
    )


def test_replicas_are_recreated_one_after_the_other() -> None:
    changes = surges_of([NEW], [FIRST, SECOND], [running(FIRST, [OLD]), running(SECOND, [OLD])])
    assert changes.recreated == {("p-0", "m")}
    assert changes.stuck.keys() == {("p-1", "m")}


def test_what_is_declared_to_surge_is_not_recreated_and_says_what_to_do() -> None:
    new = model("m", version=2, memory=50, rollout={"strategy": "Surge"})
    changes = surges_of([new], [FIRST, SECOND], [running(FIRST, [OLD]), running(SECOND, [OLD])])
    assert changes.recreated == set()
    assert changes.stuck.keys() == {("p-0", "m"), ("p-1", "m")}
    assert "rollout.strategy is Surge, so it waits for that room: set it to Auto" in changes.stuck["p-0", "m"]


def test_what_is_declared_to_surge_does_so_where_there_is_space() -> None:
    small = model("m", version=2, memory=30, rollout={"strategy": "Surge"})
    assert surges_of([small], [server("p-0", on(small, 0))], [running(FIRST, [OLD])]) == Surges()


def engine(version: int, **spec: Any) -> InferenceModel:
    return model("m", version=version, memory=10, modelFormat={"name": "tensorrt_llm"}, **spec)


def test_an_engine_that_is_opened_by_path_is_not_loaded_next_to_another_though_there_is_memory() -> None:
    new = engine(2)
    changes = surges_of([new], [server("p-0", on(new, 0))], [running(server("p-0", on(new, 0)), [engine(1)])])
    assert (changes.recreated, changes.deferred) == (set(), {})
    assert changes.stuck["p-0", "m"] == (
        "version 2 is not loaded next to version 1, which goes on serving: the server opens one engine of tensorrt_llm "
        "for all versions. Raise minReplicas to 2 until it has changed, so that one replica changes while the other "
        "serves; or set rollout.strategy to Recreate, which unloads the old one first"
    )


def test_engines_that_are_opened_by_path_change_one_after_the_other() -> None:
    old, new = engine(1), engine(2)
    plans = [server("p-0", on(new, 0)), server("p-1", on(new, 0), node="b")]
    changes = surges_of([new], plans, [running(plan, [old]) for plan in plans])
    assert changes.recreated == {("p-0", "m")}


def test_what_was_begun_goes_on_before_others_begin() -> None:
    runs = [running(FIRST, [OLD]), running(SECOND, [OLD])]
    assert surges_of([NEW], [FIRST, SECOND], runs, [("p-1", "m")]).recreated == {("p-1", "m")}


@pytest.mark.parametrize("lacks", [{"ready": False}, {"takes_requests": False}, {"routes": ()}])
def test_no_replica_goes_while_another_is_not_reached(lacks: dict[str, object]) -> None:
    other = running(SECOND, [OLD]).reported(**lacks)  # type: ignore[arg-type]
    assert surges_of([NEW], [FIRST, SECOND], [running(FIRST, [OLD]), other]).recreated.isdisjoint({("p-0", "m")})


def test_an_ensemble_goes_with_its_model_and_must_be_reached_on_others_too() -> None:
    e = ensemble("e", "m")
    both = [running(FIRST, [OLD, e]), running(SECOND, [OLD, e])]
    assert surges_of([NEW, e], [FIRST, SECOND], both).recreated == {("p-0", "m"), ("p-0", "e")}
    lacks = [both[0], both[1].reported(routes={"m"})]
    assert ("p-0", "m") not in surges_of([NEW, e], [FIRST, SECOND], lacks).recreated


def test_an_ensemble_that_no_one_declares_any_more_holds_nothing_up() -> None:
    e = ensemble("e", "m")
    runs = [running(FIRST, [OLD, e]), running(SECOND, [OLD])]
    assert surges_of([NEW], [FIRST, SECOND], runs).recreated == {("p-0", "m"), ("p-0", "e")}


def test_what_is_taken_back_goes_at_once_where_its_ensembles_have_other_servers() -> None:
    e, withdrawn = ensemble("e", "m"), frozenset({("p-0", "m")})
    runs = [running(FIRST, [OLD, e]), running(SECOND, [OLD, e])]
    assert replaced_at_once(pool_state([NEW, e], [FIRST, SECOND], runs), withdrawn) == withdrawn
    lacks = [runs[0], runs[1].reported(routes={"m"})]
    assert replaced_at_once(pool_state([NEW, e], [FIRST, SECOND], lacks), withdrawn) == frozenset()
    assert replaced_at_once(pool_state([NEW], [FIRST, SECOND], lacks), withdrawn) == withdrawn


def test_what_others_free_memory_for_is_deferred() -> None:
    old, new, x = model("m", memory=30), model("m", version=2, memory=30), model("x", memory=40)
    before = server("p-0", on(old, 0), on(x, 0))
    changes = surges_of([new], [server("p-0", on(new, 0))], [running(before, [old, x])])
    assert (changes.deferred, changes.stuck) == ({("p-0", "m"): frozenset({("p-0", "x")})}, {})


def test_with_users_follows_ensembles_of_ensembles() -> None:
    resources = [OLD, ensemble("inner", "m"), ensemble("outer", "inner"), ensemble("other", "n")]
    state = pool_state(resources, [], [running(FIRST, resources)])
    assert state.observed.with_users("m", "p-0") == {"m", "inner", "outer"}
    assert state.observed.with_users("m", "p-1") == {"m"}
