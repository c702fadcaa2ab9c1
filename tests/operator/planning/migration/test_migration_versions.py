"""Which versions stand side by side on a server: the declared one always, and what is still needed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, model
from tests.operator.planning.migration.pool_states import (
    KEYS,
    Running,
    on,
    pool_state,
    running,
    running_with,
    server,
)

from argosy.api import Ensemble
from argosy.planning.migration.revisions import ModelRevision
from argosy.planning.migration.state import PoolState
from argosy.planning.migration.versions import pins_of, target_revisions
from argosy_agent.contract import FailureKind, LoadedModel, LoadState, VersionSource

PLAN = server("p-0", on(model("m"), 0))


def versions(state: PoolState, name: str = "m") -> set[int]:
    return set(state.targets["p-0"][name].versions)


def with_versions(*numbers: int, failed: int = 0) -> Running:
    """Return a server that has loaded these versions of m; `failed` is the one that failed."""
    result = running(PLAN, [model("m")])
    revision = replace(
        result.revisions["m"], versions={number: VersionSource(f"s3://b/m/{number}") for number in numbers}
    )
    bad = [LoadedModel("m", failed, LoadState.UNAVAILABLE, "broken")] if failed else []
    return result.holding(revision).reported(others=bad)


def test_a_new_version_stands_alongside_the_old_one_until_it_is_ready() -> None:
    new = model("m", version=2)
    assert versions(pool_state([new], [PLAN])) == {2}
    assert versions(pool_state([new], [PLAN], [with_versions(1)])) == {1, 2}
    assert versions(pool_state([new], [PLAN], [with_versions(1, 2, failed=2)])) == {1, 2}
    assert versions(pool_state([new], [PLAN], [with_versions(1, 2)])) == {2}


def test_a_crash_loop_of_the_new_version_keeps_the_old_one_everywhere() -> None:
    new, other = model("m", version=2), server("p-1", on(model("m"), 0), node="b")
    crash = LoadedModel("m", 2, LoadState.READY, "crash loop: it ends", FailureKind.CRASH)
    both = with_versions(1, 2)
    crashing = replace(running(other, [new]), plan=other).reported(others=[crash])
    assert versions(pool_state([new], [PLAN, other], [both, crashing])) == {1, 2}
    assert versions(pool_state([new], [PLAN], [both])) == {2}
    assert versions(pool_state([new], [PLAN], [both.reported(others=[crash])])) == {1, 2}


def test_a_server_that_says_nothing_loses_nothing() -> None:
    assert versions(pool_state([model("m", version=2)], [PLAN], [with_versions(1, 2).reported(ready=False)])) == {1, 2}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"latest": {"numVersions": 2}}, {2, 3}),
        ({"specific": {"versions": [1, 3]}}, {1, 3}),
        ({"all": {}}, {1, 2, 3}),
    ],
)
def test_the_policy_says_what_stays(policy: dict[str, Any], expected: set[int]) -> None:
    declared = model("m", version=3, versionPolicy=policy)
    assert versions(pool_state([declared], [PLAN], [with_versions(1, 2, 3)])) == expected


@pytest.mark.parametrize("policy", [{"latest": {"numVersions": 3}}, {"specific": {"versions": [1, 2, 3]}}, {"all": {}}])
def test_a_version_above_the_declared_one_is_never_retained(policy: dict[str, Any]) -> None:
    declared = model("m", version=2, versionPolicy=policy)
    assert versions(pool_state([declared], [PLAN], [with_versions(1, 2, 3)])) == {1, 2}


def test_a_version_that_an_ensemble_runs_or_names_stays() -> None:
    new, e = model("m", version=2), ensemble("e", "m")
    before = running(PLAN, [model("m"), e])
    sources = {1: VersionSource("s3://b/m/1"), 2: VersionSource("s3://b/m/2")}
    runs = before.holding(replace(before.revisions["m"], versions=sources), before.revisions["e"])
    state = pool_state([new, e], [PLAN], [runs])
    assert versions(state) == {1, 2}
    assert state.targets["p-0"]["e"].steps == {"m": 2}
    named = ensemble("e", steps=[{"model": "m", "version": 1, "inputs": {"X": "T0"}, "outputs": {"Y": "T0"}}])
    assert versions(pool_state([new, named], [PLAN], [runs])) == {1, 2}


def test_what_served_is_to_come_again_on_a_new_server_while_no_one_serves() -> None:
    new, other = model("m", version=2), server("p-1", on(model("m"), 0), node="b")
    state = pool_state([new], [other], [with_versions(1).reported(ready=False)])
    assert set(state.targets["p-1"]["m"].versions) == {1, 2}
    state = pool_state([new], [PLAN, other], [with_versions(1)])
    assert set(state.targets["p-1"]["m"].versions) == {2}


def test_the_declared_source_of_a_version_replaces_the_loaded_one() -> None:
    moved = model("m", storageUri="s3://other/m")
    state = pool_state([moved], [PLAN], [with_versions(1)])
    assert state.targets["p-0"]["m"].versions[1].uri == "s3://other/m"
    assert state.observed.outdated == {("p-0", "m")}
    assert not state.observed.is_ready("p-0", "m", 1)
    assert state.observed.has_ready("p-0", "m", 1)


def test_another_version_alongside_the_declared_one_is_not_outdated() -> None:
    assert pool_state([model("m", version=2)], [PLAN], [with_versions(1, 2)]).observed.outdated == frozenset()


def test_models_that_wait_take_their_ensembles_out() -> None:
    m, n = model("m"), model("n")
    ensembles = [ensemble("e", "m", "n"), ensemble("f", "m"), ensemble("g", "e")]
    planned = server("p-0", on(m, 0), on(n, 0))
    state = pool_state([m, n, *ensembles], [planned])
    assert state.targets["p-0"].keys() == {"m", "n", "e", "f", "g"}
    without = target_revisions(planned, state.members, state.bindings, state.observed, KEYS, {"n"})
    assert without.keys() == {"m", "f"}


def test_pins_of_ensembles_of_ensembles_are_their_own_versions() -> None:
    chain = [ensemble("outer", "inner", "m"), ensemble("inner", "m", version=7), ensemble("whole", "gone")]
    result = pins_of([item for item in chain if isinstance(item, Ensemble)], {"m": 3})
    assert result == {"inner": {"m": 3}, "outer": {"inner": 7, "m": 3}}


POLICIES: list[dict[str, Any] | None] = [
    None,
    {"latest": {"numVersions": 2}},
    {"all": {}},
    {"specific": {"versions": [1, 2, 3, 4]}},
]
numbers = st.frozensets(st.integers(1, 4), max_size=4)


@given(
    declared=st.integers(1, 4),
    policy=st.sampled_from(POLICIES),
    loaded=st.dictionaries(st.sampled_from(["p-0", "p-1"]), numbers),
    ready=st.frozensets(st.tuples(st.sampled_from(["p-0", "p-1"]), st.integers(1, 4))),
    pinned=st.none() | st.integers(1, 4),
    ran=st.none() | st.integers(1, 4),
)
def test_the_declared_version_is_always_there_and_so_is_what_runs(
    declared: int,
    policy: dict[str, Any] | None,
    loaded: Mapping[str, frozenset[int]],
    ready: frozenset[tuple[str, int]],
    pinned: int | None,
    ran: int | None,
) -> None:
    m = model("m", version=declared, versionPolicy=policy)
    step = {"model": "m", "inputs": {"X": "T0"}, "outputs": {"Y": "T0"}} | ({"version": pinned} if pinned else {})
    resources = [m, ensemble("e", steps=[step])]
    runs = [_server(name, result, ready, ran) for name, result in loaded.items()]
    state = pool_state(resources, [PLAN], runs)
    result = state.targets["p-0"]
    assert declared in result["m"].versions
    before = loaded.get("p-0", frozenset())
    registered = {declared}.union(*loaded.values())
    assert set(result["m"].versions) <= registered
    if ran in before:
        assert ran in result["m"].versions
    if not (declared in before and ("p-0", declared) in ready):
        assert before <= set(result["m"].versions)
    (at,) = result["e"].steps.values()
    assert at in result["m"].versions or at not in registered
    assert result["e"] == state.observed.loaded_on("p-0").get("e") or at == (pinned or declared)


def _server(name: str, result: frozenset[int], ready: frozenset[tuple[str, int]], ran: int | None) -> Running:
    revisions = (
        {"m": ModelRevision("m", {item: VersionSource(f"s3://b/m/{item}") for item in result})} if result else {}
    )
    if ran in result:
        revisions["e"] = ModelRevision("e", {1: VersionSource()}, steps={"m": ran})
    overdue = [LoadedModel("m", item, LoadState.LOADING) for item in result if (name, item) not in ready]
    return running_with(server(name), revisions).reported(others=overdue)
