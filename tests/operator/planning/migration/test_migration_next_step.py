"""What each server is told to hold and to be reached for."""

from dataclasses import replace
from datetime import UTC, datetime

from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.migration.pool_states import KEYS, on, pool_state, running, server
from tests.operator.planning.simulated_cluster import Cluster

from argosy.planning.migration.next_step import server_steps
from argosy.planning.migration.state import Migration

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_what_is_settled_stays_and_is_routed() -> None:
    m, e = model("m"), ensemble("e", "m")
    planned = server("p-0", on(m, 0))
    state = pool_state([m, e], [planned], [running(planned, [m, e])])
    (step,) = server_steps(state, Migration(), KEYS)
    assert (step.revisions, step.routes) == (state.observed.loaded_on("p-0"), {"m", "e"})
    assert step.served == {"m": (1,), "e": (1,)}
    assert not step.draining


def test_what_does_not_answer_is_not_routed() -> None:
    m, n = model("m"), model("n")
    planned = server("p-0", on(m, 0), on(n, 0))
    state = pool_state([m, n], [planned], [running(server("p-0", on(m, 0)), [m])])
    (step,) = server_steps(state, Migration(), KEYS)
    assert step.revisions.keys() == {"m", "n"}
    assert (step.routes, step.served) == ({"m"}, {"m": (1,)})


def test_what_drains_is_loaded_unrouted_and_says_since_when() -> None:
    m, n = model("m"), model("n")
    state = pool_state([m], [server("p-0", on(m, 0))], [running(server("p-0", on(m, 0), on(n, 0)), [m, n])])
    migration = Migration(retained={"p-0": {"n"}}, unrouted={"p-0": {"n"}}, drain_since={("p-0", "n"): NOON})
    (step,) = server_steps(state, migration, KEYS)
    assert step.revisions.keys() == {"m", "n"}
    assert (step.routes, step.drain_since, step.as_loaded) == ({"m"}, {"n": NOON}, {"n"})


def test_a_server_without_gpus_is_left_out_and_a_draining_one_is_last() -> None:
    m, n = model("m"), model("n")
    old, new = server("p-0", on(m, 0)), server("p-1", on(m, 0))
    state = pool_state([m, n], [new, server("p-2", on(n, 1))], [running(old, [m])])
    waits = Migration(retained={"p-0": {"m"}}, draining=(replace(old, placements=()),), waiting=frozenset({"p-1"}))
    steps = server_steps(state, waits, KEYS)
    assert [(step.plan.name, step.draining, set(step.revisions)) for step in steps] == [
        ("p-2", False, {"n"}),
        ("p-0", True, {"m"}),
    ]


def test_a_former_revision_keeps_its_text_where_a_new_one_is_alike() -> None:
    """A settled model is rendered again: only one that stays in its former revision keeps its text."""
    m = model("m")
    planned = server("p-0", on(m, 0))
    state = pool_state([m], [planned], [running(planned, [m])])
    (settled,), (former,) = (
        server_steps(state, Migration(), KEYS),
        server_steps(state, Migration(former={"p-0": {"m"}}), KEYS),
    )
    assert settled.revisions == former.revisions
    assert (settled.as_loaded, former.as_loaded) == (frozenset(), {"m"})


def test_an_ensemble_goes_over_when_all_its_steps_are_ready() -> None:
    m, n = model("m"), model("n")
    planned = server("p-0", on(m, 0), on(n, 0))
    before, now = [m, ensemble("e", "m")], [m, n, ensemble("e", "m", "n", version=2)]
    lacks_n = running(server("p-0", on(m, 0)), before)
    (waits,) = server_steps(pool_state(now, [planned], [lacks_n]), Migration(), KEYS)
    assert (waits.revisions["e"].steps, waits.as_loaded) == ({"m": 1}, {"e"})
    revisions = running(planned, [m, n]).revisions.values()
    has_n = lacks_n.holding(*revisions, lacks_n.revisions["e"])
    (moves,) = server_steps(pool_state(now, [planned], [has_n]), Migration(), KEYS)
    assert (moves.revisions["e"].steps, moves.as_loaded) == ({"m": 1, "n": 1}, frozenset())


def test_an_ensemble_goes_on_while_a_further_step_waits_for_space() -> None:
    a, x, b = model("a", memory=10), model("x", memory=45), model("b", memory=40)
    before = [a, x, ensemble("e", "a"), ensemble("outer", "e")]
    now = [a, b, ensemble("e", "a", "b", version=2), ensemble("outer", "e")]
    state = pool_state(now, [server("p-0", on(a, 0), on(b, 0))], [running(server("p-0", on(a, 0), on(x, 0)), before)])
    (step,) = server_steps(state, Migration(retained={"p-0": {"x"}}, deferred={"p-0": {"b"}}), KEYS)
    assert step.revisions["e"].steps == {"a": 1}
    assert step.routes == step.revisions.keys() == {"a", "x", "e", "outer"}
    assert step.as_loaded == {"x", "e", "outer"}


def test_an_ensemble_drains_with_the_step_that_frees_memory() -> None:
    m, n = model("m", memory=50), model("n", memory=50)
    before = [m, ensemble("e", "m"), ensemble("outer", "e")]
    now = [n, ensemble("e", "n", version=2), ensemble("outer", "e")]
    state = pool_state(now, [server("p-0", on(n, 0))], [running(server("p-0", on(m, 0)), before)])
    deferred, drains = {"p-0": {"n"}}, {"p-0": {"m"}}
    (draining,) = server_steps(state, Migration(retained=drains, unrouted=drains, deferred=deferred), KEYS)
    assert (draining.revisions.keys(), draining.routes) == ({"m", "e", "outer"}, frozenset())
    (gone,) = server_steps(state, Migration(unrouted=drains, deferred=deferred), KEYS)
    assert gone.revisions == {}


def test_what_is_recreated_takes_its_ensemble_down_with_it() -> None:
    m, e = model("m", version=2), ensemble("e", "m")
    planned = server("p-0", on(m, 0))
    state = pool_state([m, e], [planned], [running(planned, [model("m"), e])])
    both = {"p-0": {"m", "e"}}
    (drains,) = server_steps(state, Migration(retained=both, unrouted=both, deferred=both), KEYS)
    assert (drains.as_loaded, drains.routes) == ({"m", "e"}, frozenset())
    (gone,) = server_steps(state, Migration(deferred=both), KEYS)
    assert gone.revisions == {}


def test_no_request_notices_that_a_new_step_waits_for_a_model_that_leaves() -> None:
    cluster = Cluster((gpu_node("a"),))
    a, b = model("a", memory=10), model("b", memory=40)
    cluster.settle([pool(), a, model("x", memory=45), ensemble("e", "a")])
    now = [pool(), a, b, ensemble("e", "a", "b", version=2)]
    for _ in range(30):
        cluster.tick(now)
        assert cluster.routed()["e"] == {"p-0"}
    cluster.settle(now)
    assert cluster.routed().keys() == {"a", "b", "e"}


def test_what_a_replacement_takes_over_is_reported_to_be_served() -> None:
    """The server that had it is gone; until the new one is ready it stands for what served."""
    m = model("m")
    state = pool_state(
        [m], [server("p-1", on(m, 0), node="b")], [running(server("p-0", on(m, 0)), [m]).reported(ready=False)]
    )
    (step,) = server_steps(state, Migration(), KEYS)
    assert step.served == {"m": (1,)}
