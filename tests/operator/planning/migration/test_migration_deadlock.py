"""What waits for each other in a circle: one gives way, and the rest follows."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, model
from tests.operator.planning.migration.pool_states import Running, on, pool_state, running, running_with, server

from argosy.planning.cycles import find_cycle
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.blockers import Blockers
from argosy.planning.migration.changes.surge import Surges
from argosy.planning.migration.drain import Drain
from argosy.planning.migration.pool_migration import migrate
from argosy.planning.migration.revisions import ModelRevision
from argosy.planning.migration.state import Note, PoolState
from argosy.planning.migration.waiting.deadlock import break_deadlocks
from argosy_agent.contract import VersionSource

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PERIOD = timedelta(seconds=10)


def test_of_two_that_swap_servers_one_leaves_early() -> None:
    m, n = model("m", memory=50), model("n", memory=50)
    runs = [
        running(server("p-0", on(m, 0)), [m]),
        running(server("p-1", on(n, 0), node="b"), [n]),
    ]
    state = pool_state([m, n], [server("p-0", on(n, 0)), server("p-1", on(m, 0), node="b")], runs)
    drains = {("p-0", "m"): Drain.NOT_YET, ("p-1", "n"): Drain.NOT_YET}
    blockers: Blockers = {
        ("p-0", "n"): frozenset({("p-0", "m")}),
        ("p-1", "m"): frozenset({("p-1", "n")}),
    }
    notes: dict[Binding, Note] = {}
    break_deadlocks(state, drains, blockers, Surges(), notes)
    assert drains == {("p-0", "m"): Drain.AT_ONCE, ("p-1", "n"): Drain.NOT_YET}
    assert notes.keys() == {("p-1", "m")}
    assert notes["p-1", "m"].message == "it left p-0 before it was loaded here, because others waited for its room"


def test_without_a_circle_no_one_leaves_early() -> None:
    m, n = model("m", memory=50), model("n", memory=50)
    runs = [running(server("p-0", on(m, 0)), [m]), running(server("p-1", node="b", gpus=(0,)), [])]
    state = pool_state([m, n], [server("p-0", on(n, 0)), server("p-1", on(m, 0), node="b")], runs)
    drains = {("p-0", "m"): Drain.NOT_YET}
    break_deadlocks(state, drains, {("p-0", "n"): frozenset({("p-0", "m")})}, Surges(), {})
    assert drains == {("p-0", "m"): Drain.NOT_YET}


def test_what_leaves_early_takes_the_ensembles_along_that_would_keep_it() -> None:
    m, n, e = model("m", memory=50), model("n", memory=50), ensemble("e", "m")
    runs = [
        running(server("p-0", on(m, 0)), [m, e]),
        running(server("p-1", on(n, 0), node="b"), [n]),
    ]
    state = pool_state([m, n, e], [server("p-0", on(n, 0)), server("p-1", on(m, 0), node="b")], runs)
    first = migrate(state, {}, NOON, PERIOD)
    assert first.unrouted == {"p-0": {"m", "e"}}
    assert first.retained == {"p-0": {"m", "e"}, "p-1": {"n"}}
    gone = [runs[0].reported(routes=()), runs[1]]
    after = pool_state([m, n, e], [server("p-0", on(n, 0)), server("p-1", on(m, 0), node="b")], gone)
    assert migrate(after, first.drain_since, NOON + PERIOD, PERIOD).retained == {"p-1": {"n"}}


@pytest.mark.parametrize(("surging", "recreated"), [("", ("p-0", "m")), ("m", ("p-0", "n")), ("mn", None)])
def test_what_is_declared_to_surge_gives_way_to_nothing(surging: str, recreated: Binding | None) -> None:
    """Two models change on one server, and each waits for the other's old revision to go."""
    declared = [
        model(name, version=2, memory=50, **({"rollout": {"strategy": "Surge"}} if name in surging else {}))
        for name in "mn"
    ]
    state = pool_state(declared, [server("p-0", *(on(item, 0) for item in declared))], [])
    m, n = ("p-0", "m"), ("p-0", "n")
    changes = Surges(deferred={m: frozenset({n}), n: frozenset({m})})
    break_deadlocks(state, {}, {}, changes, {})
    assert changes.recreated == ({recreated} if recreated else set())
    assert changes.stuck.keys() == (set() if recreated else {m})


@pytest.mark.parametrize(("crowded", "lacks"), [(True, "ConfigMap"), (False, "footprint.gpuMemory")])
def test_what_surges_in_a_circle_reports_what_it_lacks(crowded: bool, lacks: str) -> None:
    declared = [model(name, version=2, memory=50, rollout={"strategy": "Surge"}) for name in "mn"]
    state = pool_state(declared, [server("p-0", *(on(item, 0) for item in declared))], [])
    m, n = ("p-0", "m"), ("p-0", "n")
    changes = Surges(deferred={m: frozenset({n}), n: frozenset({m})}, crowded={m} if crowded else set())
    notes: dict[Binding, Note] = {}
    break_deadlocks(state, {}, {}, changes, notes)
    assert lacks in notes[m].message
    assert ("ConfigMap" in notes[m].message) == crowded
    assert notes[m].message == changes.stuck[m]


SERVERS, NAMES = ("p-0", "p-1", "p-2"), ("m0", "m1", "m2", "m3")
bindings = st.tuples(st.sampled_from(SERVERS), st.sampled_from(NAMES))


@st.composite
def tangles(draw: st.DrawFn) -> tuple[PoolState, dict[Binding, Drain], Blockers, Surges]:
    """Draw models that move anywhere, and that wait for each other in any way; some are in an ensemble."""
    models = {name: model(name, memory=0) for name in NAMES}
    locations = draw(st.frozensets(bindings, max_size=6))
    reserved = draw(st.frozensets(bindings, min_size=1, max_size=8))
    planned = [server(s, *(on(models[n]) for n in NAMES if (s, n) in locations)) for s in SERVERS]
    runs: list[Running] = []
    for name in SERVERS:
        revisions = {n: ModelRevision(n, {1: VersionSource()}) for s, n in sorted(reserved) if s == name}
        if revisions and draw(st.booleans()):
            revisions["e"] = ModelRevision(
                "e", {1: VersionSource()}, steps={draw(st.sampled_from(sorted(revisions))): 1}
            )
        runs.append(running_with(server(name), revisions))
    state = pool_state(models.values(), planned, runs)
    surplus = [(s, n) for s, names in state.surplus().items() for n in sorted(names)]
    drains = {surplu: draw(st.sampled_from(Drain)) for surplu in surplus}
    awaited = st.frozensets(st.sampled_from(sorted(reserved)), min_size=1, max_size=3)
    blockers = {item: draw(awaited) for item in sorted(locations - reserved)}
    stay = sorted(locations & reserved)
    deferred = {item: draw(awaited) for item in stay if draw(st.booleans())}
    return state, drains, blockers, Surges(deferred=deferred)


@given(tangles())
def test_every_tangle_is_undone_and_only_what_was_in_it_gives_way(
    tangle: tuple[PoolState, dict[Binding, Drain], Blockers, Surges],
) -> None:
    state, drains, blockers, changes = tangle
    before, deferred = dict(drains), dict(changes.deferred)
    break_deadlocks(state, drains, blockers, changes, {})
    left: dict[Binding, tuple[Binding, ...]] = {item: tuple(awaited) for item, awaited in changes.deferred.items()}
    for (where, name), drain in drains.items():
        if drain is Drain.NOT_YET:
            new = [(location, name) for location in state.bindings.servers.get(name, ())]
            left[where, name] = tuple(item for location in new for item in blockers.get(location, ()))
    assert not find_cycle(left)
    assert all(drains[item] in (drain, Drain.AT_ONCE) for item, drain in before.items())
    assert deferred.keys() - changes.deferred.keys() <= changes.recreated
    assert all(drains[item] is Drain.AT_ONCE for item in changes.recreated)
