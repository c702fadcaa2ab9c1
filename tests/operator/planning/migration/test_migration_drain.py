"""When something that is loaded and not planned goes: never while requests may come for it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, model
from tests.operator.planning.migration.pool_states import Running, on, pool_state, running, server

from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.drain import Drain, drain_of, schedule
from argosy.planning.migration.state import Migration, PoolState
from argosy_agent.contract import LoadedModel, LoadState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PERIOD = timedelta(seconds=10)
M = model("m")
OLD, NEW = server("p-0", on(M, 0)), server("p-1", on(M, 0), node="b")
BINDING = ("p-0", "m")


def moving(new: Running | None = None, **old: Any) -> PoolState:
    """Return the state of a pool whose model moves from p-0 to p-1."""
    return pool_state([M], [NEW], [running(OLD, [M]).reported(**old), *([new] if new else [])])


def drains(
    state: PoolState,
    drain: Drain,
    now: datetime = NOON,
    before: Mapping[Binding, datetime] | None = None,
    period: timedelta = PERIOD,
) -> Migration:
    migration = Migration()
    schedule(state, {BINDING: drain}, before or {}, now, period, migration)
    return migration


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (None, Drain.NOT_YET),
        (running(NEW, [M]), Drain.AFTER_HANDOVER),
        (running(NEW, [M]).reported(ready=False), Drain.NOT_YET),
        (running(NEW, [M]).reported(routes=()), Drain.NOT_YET),
        (running(NEW, [M]).reported(takes_requests=False), Drain.NOT_YET),
        (running(NEW, [M]).reported(others=[LoadedModel("m", 1, LoadState.LOADING)]), Drain.NOT_YET),
        (running(NEW, [model("m", storageUri="s3://b/other")]), Drain.NOT_YET),
    ],
    ids=["not there", "reachable", "silent", "unrouted", "not Ready", "loading", "in another revision"],
)
def test_a_move_waits_until_requests_reach_the_declared_revision(new: Running | None, expected: Drain) -> None:
    assert drain_of(moving(new), BINDING) is expected


def test_a_model_waits_for_every_new_server() -> None:
    third = server("p-2", on(M, 0), node="c")
    runs = [running(OLD, [M]), running(NEW, [M])]
    assert drain_of(pool_state([M], [NEW], runs), BINDING) is Drain.AFTER_HANDOVER
    assert drain_of(pool_state([M], [NEW, third], runs), BINDING) is Drain.NOT_YET


def test_a_model_waits_for_a_new_server_that_is_still_to_restart() -> None:
    """Its Pod answers until it ends, which a rolling update may put off: what it serves goes with it."""
    grown = server("p-1", on(M, 0), node="b", gpus=(0, 1))
    state = pool_state([M], [grown], [running(OLD, [M]), running(NEW, [M])])
    assert drain_of(state, BINDING) is Drain.NOT_YET


def test_what_no_one_declares_any_more_goes_at_once() -> None:
    assert drain_of(pool_state([], [], [running(OLD, [M])]), BINDING) is Drain.AT_ONCE


def test_an_ensemble_goes_at_once_with_a_model_that_no_one_declares() -> None:
    e = ensemble("e", "m")
    state = pool_state([e], [], [running(OLD, [M, e])])
    assert drain_of(state, ("p-0", "e")) is Drain.AT_ONCE


@pytest.mark.parametrize(("reached", "expected"), [(True, Drain.AFTER_HANDOVER), (False, Drain.NOT_YET)])
def test_what_another_pool_is_to_serve_waits_until_it_is_reached_there(reached: bool, expected: Drain) -> None:
    assert drain_of(pool_state([], [], [running(OLD, [M])], moved={"m": reached}), BINDING) is expected


def test_what_has_no_valid_revision_stays() -> None:
    assert drain_of(pool_state([], [], [running(OLD, [M])], broken=[M]), BINDING) is Drain.NOT_YET


def test_what_fits_nowhere_stays_and_what_wants_no_gpu_goes() -> None:
    assert drain_of(pool_state([M], [], [running(OLD, [M])], unplaced=["m"]), BINDING) is Drain.NOT_YET
    assert drain_of(pool_state([M], [], [running(OLD, [M])]), BINDING) is Drain.AT_ONCE


def test_a_handover_waits_half_a_period_for_endpoints_and_then_drains() -> None:
    state, since = moving(running(NEW, [M])), NOON + PERIOD / 2
    first = drains(state, Drain.AFTER_HANDOVER)
    assert (first.unrouted, first.retained, first.wake) == ({}, {"p-0": {"m"}}, since)
    second = drains(state, Drain.AFTER_HANDOVER, since, first.drain_since)
    assert (second.unrouted, second.retained, second.wake) == ({"p-0": {"m"}}, {"p-0": {"m"}}, since + PERIOD)
    unrouted = moving(running(NEW, [M]), routes=())
    last = drains(unrouted, Drain.AFTER_HANDOVER, since + PERIOD, second.drain_since)
    assert (last.unrouted, last.retained, last.wake) == ({"p-0": {"m"}}, {}, None)
    assert last.drain_since == {BINDING: since}


def test_what_goes_at_once_is_still_drained() -> None:
    result = drains(moving(), Drain.AT_ONCE)
    assert (result.unrouted, result.retained, result.wake) == ({"p-0": {"m"}}, {"p-0": {"m"}}, NOON + PERIOD)


def test_what_does_not_answer_has_nothing_to_drain() -> None:
    silent = moving(ready=False, routes=())
    assert drains(silent, Drain.AT_ONCE).retained == {}
    assert drains(moving(ready=False), Drain.AT_ONCE).retained == {}


def test_the_drain_restarts_where_the_route_was_not_taken() -> None:
    """The Pod's label could not be removed: requests still come."""
    overdue = NOON + 3 * PERIOD
    result = drains(moving(), Drain.AT_ONCE, overdue, {BINDING: NOON})
    assert (result.drain_since, result.retained) == ({BINDING: overdue}, {"p-0": {"m"}})


def test_what_has_to_stay_again_restarts_later() -> None:
    result = drains(moving(), Drain.NOT_YET, NOON, {BINDING: NOON - PERIOD})
    assert (result.retained, result.unrouted, result.drain_since, result.wake) == ({"p-0": {"m"}}, {}, {}, None)


def test_what_leaves_early_does_not_wait_for_a_handover_that_lay_ahead() -> None:
    result = drains(moving(), Drain.AT_ONCE, NOON, {BINDING: NOON + PERIOD / 2})
    assert (result.unrouted, result.drain_since) == ({"p-0": {"m"}}, {BINDING: NOON})


@pytest.mark.parametrize("drain", [Drain.AT_ONCE, Drain.AFTER_HANDOVER])
def test_without_a_period_it_is_unrouted_and_unloaded_at_once(drain: Drain) -> None:
    """On one machine no endpoint has to follow."""
    result = drains(moving(), drain, period=timedelta())
    assert (result.retained, result.unrouted, result.wake) == ({}, {"p-0": {"m"}}, None)


def test_an_ensemble_that_stays_keeps_what_it_runs() -> None:
    inner, outer = ensemble("inner", "m"), ensemble("outer", "inner")
    state = pool_state([M, inner, outer], [NEW], [running(OLD, [M, inner, outer])])
    migration = Migration()
    before = {BINDING: NOON - PERIOD, ("p-0", "inner"): NOON - PERIOD}
    chosen = {BINDING: Drain.AT_ONCE, ("p-0", "inner"): Drain.AT_ONCE, ("p-0", "outer"): Drain.NOT_YET}
    schedule(state, chosen, before, NOON, PERIOD, migration)
    assert migration.retained == {"p-0": {"m", "inner", "outer"}}


rounds = st.lists(
    st.tuples(
        st.floats(0, 20).map(lambda seconds: timedelta(seconds=seconds)),
        st.sampled_from(Drain),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@given(rounds)
def test_nothing_that_answers_is_unloaded_while_it_is_routed_or_soon_after(
    times: list[tuple[timedelta, Drain, bool, bool]],
) -> None:
    """Whatever the rounds come to, and however often the routes are not what they should be."""
    now, last_routed, before, desired = NOON, NOON, dict[Binding, datetime](), True
    for passed, drain, label_follows, ready in times:
        now += passed
        routed = desired or not label_follows
        last_routed = now if routed else last_routed
        result = drains(moving(ready=ready, routes=("m",) if routed else ()), drain, now, before)
        retained, unrouted = "m" in result.retained.get("p-0", ()), "m" in result.unrouted.get("p-0", ())
        assert retained or (drain is Drain.AT_ONCE and not ready) or now >= last_routed + PERIOD
        assert retained or unrouted
        assert not unrouted or drain is not Drain.NOT_YET
        assert result.wake is None or now < result.wake <= now + PERIOD
        assert retained == (result.wake is not None) or drain is Drain.NOT_YET
        if not retained:
            break
        before, desired = result.drain_since, not unrouted
