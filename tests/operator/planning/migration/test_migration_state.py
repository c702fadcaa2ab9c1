"""The plan compared with the servers: which is replaced, which drains, and what is surplus where."""

from tests.operator.planning.declared import ensemble, gpu_node, model
from tests.operator.planning.migration.pool_states import on, pool_state, running, server

M, N = model("m"), model("n")
OLD = server("p-0", on(M, 0), on(N, 1), gpus=(0, 1))


def test_an_ensemble_is_where_all_its_models_are() -> None:
    planned = [server("p-0", on(M, 0), on(N, 0)), server("p-1", on(M, 0), node="b")]
    bindings = pool_state([M, N, ensemble("e", "m", "n"), ensemble("outer", "e")], planned).bindings
    assert bindings.servers == {"m": ("p-0", "p-1"), "n": ("p-0",), "e": ("p-0",), "outer": ("p-0",)}
    assert bindings.names == {"p-0": {"m", "n", "e", "outer"}, "p-1": {"m"}}


def test_an_ensemble_whose_model_does_not_fit_does_not_fit_either() -> None:
    bindings = pool_state([M, N, ensemble("e", "m", "n")], [server("p-0", on(M, 0))], unplaced=["n"]).bindings
    assert bindings.unschedulable == {"n", "e"}


def test_what_is_loaded_and_not_planned_is_surplus() -> None:
    e = ensemble("e", "n")
    state = pool_state([M, N, e], [server("p-0", on(M, 0), gpus=(0, 1))], [running(OLD, [M, N, e])])
    assert state.surplus() == {"p-0": {"n", "e"}}


def test_a_server_that_is_not_planned_drains_and_all_on_it_is_surplus() -> None:
    state = pool_state([M, N], [], [running(OLD, [M, N])])
    assert [server.name for server in state.draining_servers()] == ["p-0"]
    assert state.surplus() == {"p-0": {"m", "n"}}


def test_a_server_on_a_gone_node_is_gone() -> None:
    state = pool_state([M, N], [], [running(OLD, [M, N])], nodes=[gpu_node("b")])
    assert (state.draining_servers(), state.surplus()) == ([], {})


def test_a_server_that_moves_restarts_and_has_no_surplus() -> None:
    runs = [running(OLD, [M, N])]
    grown, moved = server("p-0", on(M, 0), gpus=(0, 1, 2)), server("p-0", on(M, 0), gpus=(0, 1), node="b")
    for planned in (grown, moved):
        state = pool_state([M], [planned], runs)
        assert not state.keeps_its_gpus(planned)
        assert (state.draining_servers(), state.surplus()) == ([], {})
    assert pool_state([M, N], [OLD], runs).keeps_its_gpus(OLD)


def test_a_server_that_does_not_run_yet_starts_again() -> None:
    assert not pool_state([M, N], [OLD]).keeps_its_gpus(OLD)
