"""One round of a pool's migration: what stays, drains or waits, and its messages."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, model
from tests.operator.planning.migration.pool_states import (
    KEYS,
    on,
    pool_state,
    running,
    running_with,
    server,
)

from argosy.api import Resource
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.blockers import blockers_of
from argosy.planning.migration.next_step import server_steps
from argosy.planning.migration.pool_migration import DRAIN_PERIOD, budgets_of, migrate, occupants_of
from argosy.planning.migration.state import Migration, PoolState
from argosy.planning.plan import ServerPlan

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
M, N = model("m", memory=50), model("n", memory=50)


def blockers(state: PoolState) -> Mapping[Binding, frozenset[Binding]]:
    surplus = occupants_of(state)
    return blockers_of(state, surplus, budgets_of(state, surplus))


def test_a_server_waits_for_the_gpus_of_one_that_drains() -> None:
    old, new = server("p-0", on(M, 0), gpus=(0, 1)), server("p-1", on(N, 1))
    state = pool_state([M, N], [new], [running(old, [M])], unplaced=["m"])
    assert blockers(state) == {("p-1", "n"): {("p-0", "m")}}
    result = migrate(state, {}, NOON)
    assert (result.waiting, result.retained) == ({"p-1"}, {"p-0": {"m"}})
    assert result.draining == (ServerPlan("p-0", "a", (0, 1), ()),)
    assert result.notes["p-1", "n"].message == "it waits until m has left p-0"


def test_a_server_does_not_wait_for_other_gpus_or_another_node() -> None:
    old = running(server("p-0", on(M, 0)), [M])
    for new in (server("p-1", on(N, 1)), server("p-1", on(N, 0), node="b")):
        state = pool_state([M, N], [new], [old], unplaced=["m"])
        assert blockers(state) == {}
        assert migrate(state, {}, NOON).waiting == frozenset()


def test_a_server_waits_for_no_server_that_holds_nothing() -> None:
    state = pool_state([N], [server("p-1", on(N, 0))], [running_with(server("p-0", gpus=(0,)), {})])
    result = migrate(state, {}, NOON)
    assert (result.waiting, result.draining) == (frozenset(), ())


def test_a_model_waits_for_memory_on_its_own_server() -> None:
    old = running(server("p-0", on(M, 0)), [M])
    state = pool_state([M, N], [server("p-0", on(N, 0))], [old], unplaced=["m"])
    assert blockers(state) == {("p-0", "n"): {("p-0", "m")}}
    result = migrate(state, {}, NOON)
    assert (result.deferred, result.retained) == ({"p-0": {"n"}}, {"p-0": {"m"}})
    assert result.notes["p-0", "n"].message == "it waits until m has left this server"


def test_one_that_runs_and_grows_into_the_gpus_of_another_preempts_it() -> None:
    """What runs does not wait for GPUs: Kubernetes would not start it before the other's Pod is gone."""
    grows = running(server("p-0", on(N, 0)), [N])
    old = running(server("p-1", on(M, 1)), [M])
    state = pool_state([M, N], [server("p-0", on(N, 0), on(M, 1))], [grows, old])
    result = migrate(state, {}, NOON)
    assert result.draining == ()
    assert result.notes["p-0", "m"].message.startswith("it left p-1 before it was loaded here")


def test_a_server_that_restarts_with_other_gpus_frees_no_memory() -> None:
    old = running(server("p-0", on(M, 0)), [M])
    result = migrate(pool_state([N], [server("p-0", on(N, 0), gpus=(0, 1))], [old]), {}, NOON)
    assert result == Migration()


def test_the_drain_of_something_whose_server_vanished_is_forgotten() -> None:
    before = {("p-9", "m"): NOON - timedelta(seconds=3)}
    planned = server("p-0", on(M, 0))
    assert migrate(pool_state([M], [planned], [running(planned, [M])]), before, NOON) == Migration()


def test_a_server_that_vanished_and_comes_back_begins_its_drain_again() -> None:
    state = pool_state([], [], [running(server("p-0", on(M, 0)), [M])])
    assert migrate(state, {("p-0", "m"): NOON - DRAIN_PERIOD}, NOON).drain_since == {("p-0", "m"): NOON}


def test_what_is_recreated_hands_over_drains_and_is_then_loaded() -> None:
    new = model("m", version=2, memory=50)
    planned = [server("p-0", on(new, 0)), server("p-1", on(new, 0), node="b")]
    runs = [running(item, [M]) for item in planned]
    begins = migrate(pool_state([new], planned, runs), {}, NOON)
    assert (begins.retained, begins.unrouted, begins.wake) == ({"p-0": {"m"}}, {}, NOON + DRAIN_PERIOD / 2)
    assert begins.notes["p-0", "m"].message == "it waits until m has left this server"
    assert begins.notes["p-1", "m"].stuck
    runs[0] = runs[0].reported(routes=())
    last = NOON + 2 * DRAIN_PERIOD
    gone = migrate(pool_state([new], planned, runs), {("p-0", "m"): NOON + DRAIN_PERIOD / 2}, last)
    assert (gone.retained, gone.deferred, gone.former) == ({}, {"p-0": {"m"}}, {"p-1": {"m"}})


def test_what_a_change_waits_for_is_reported_with_a_few_names() -> None:
    others = [model(f"x{at}", memory=10) for at in range(5)]
    old = server("p-0", *(on(other, 0) for other in others))
    state = pool_state([M, *others], [server("p-0", on(M, 0))], [running(old, others)], unplaced=["x0"])
    (note,) = {migrate(state, {}, NOON).notes["p-0", "m"].message}
    assert note == "it waits until x0, x1, x2 and others has left this server"


SERVERS = {"p-0": ("a", 0), "p-1": ("b", 0), "p-2": ("a", 1)}
NAMES = ("m0", "m1", "m2")
names = st.frozensets(st.sampled_from(NAMES), min_size=1)
placed = st.dictionaries(st.sampled_from(sorted(SERVERS)), names)


def server_plans(where: Mapping[str, frozenset[str]], models: Mapping[str, Resource]) -> list[ServerPlan]:
    """Return servers with these models; what is not declared is left out."""
    return [
        server(name, *(on(models[m], SERVERS[name][1]) for m in sorted(ms & models.keys())), node=SERVERS[name][0])
        if ms & models.keys()
        else server(name, node=SERVERS[name][0], gpus=(SERVERS[name][1],))
        for name, ms in where.items()
    ]


@given(
    before=placed,
    after=placed,
    sizes=st.tuples(*(st.sampled_from([10, 30, 50]) for _ in NAMES)),
    newer=names,
    uses=st.tuples(names, names),
    deleted=st.frozensets(st.sampled_from([*NAMES, "e"])),
)
@example(
    before={"p-0": frozenset({"m0"})},
    after={"p-0": frozenset({"m0"})},
    sizes=(50, 10, 10),
    newer=frozenset({"m0"}),
    uses=(frozenset({"m1"}), frozenset({"m0"})),
    deleted=frozenset(),
)
def test_between_any_two_plans_nothing_routed_is_unloaded_in_one_round(
    before: Mapping[str, frozenset[str]],
    after: Mapping[str, frozenset[str]],
    sizes: tuple[int, ...],
    newer: frozenset[str],
    uses: tuple[frozenset[str], frozenset[str]],
    deleted: frozenset[str],
) -> None:
    """Also for plans that do not fit; and an ensemble's models stand next to it."""
    size = dict(zip(NAMES, sizes, strict=True))
    old = {name: model(name, 1, size[name]) for name in NAMES}
    now = {name: model(name, 2 if name in newer else 1, size[name]) for name in NAMES if name not in deleted}
    graphs = [ensemble("e", *sorted(steps), version=at + 1) for at, steps in enumerate(uses)]
    runs = [running(item, [*old.values(), graphs[0]]) for item in server_plans(before, old)]
    declared = [*now.values(), *(graphs[1:] if "e" not in deleted and uses[1] <= now.keys() else [])]
    state = pool_state(declared, server_plans(after, now), runs)
    steps = {step.plan.name: step for step in server_steps(state, migrate(state, {}, NOON), KEYS)}
    for run in runs:
        assert run.revisions.keys() <= steps[run.plan.name].revisions.keys()
    for step in steps.values():
        for revision in step.revisions.values():
            for name, version in revision.steps.items():
                assert version in step.revisions[name].versions
