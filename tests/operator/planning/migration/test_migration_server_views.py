"""A server's next step is derived again where a part that it follows from differs, each by itself, and else is not."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import POOL, START, Cluster

from argosy.api.servingpool import RuntimeName
from argosy.api.values.reuse import RoundCache
from argosy.planning.demand.measured import MeasuredMemory
from argosy.planning.demand.model_files import EngineFiles
from argosy.planning.facts import Node
from argosy.planning.migration.views.server_views import ServerViews
from argosy.planning.plan import ServerPlan
from argosy.reconcile.decide import decide
from argosy_agent.contract import LoadedModel, LoadState

MEASURED = MeasuredMemory(1 << 30, 1, START, "", 80 << 30)
ENGINES = {"b": {"ampere": {1: EngineFiles("s3://engines/b")}}}


@cache
def settled() -> tuple[ServerViews, ServerPlan]:
    """Return a pool on whose first server an ensemble, a model with a rollout and one with an engine serve."""
    cluster = Cluster((gpu_node("n"), gpu_node("o")))
    first = [model("a", rollout={"steps": [{"traffic": "10%"}]}), model("b"), ensemble("pipe", "a", "b")]
    cluster.settle([pool(), *first, model("elsewhere", memory=60)])
    state = decide(cluster.snapshot, cluster.now).migrations[POOL].state
    engines = replace(state.members.engines, files=ENGINES, nodes={node.name: node for node in cluster.nodes})
    views = ServerViews(replace(state.members, engines=engines), state.bindings, replace(state.observed))
    server = next(server for server in state.plan.servers if "a" in state.bindings.names[server.name])
    assert "elsewhere" not in state.bindings.names[server.name]
    return views, server


def of_members(views: ServerViews, **parts: Any) -> ServerViews:
    return replace(views, members=replace(views.members, **parts))


def of_engines(views: ServerViews, **parts: Any) -> ServerViews:
    return of_members(views, engines=replace(views.members.engines, **parts))


def of_observed(views: ServerViews, **parts: Any) -> ServerViews:
    return replace(views, observed=replace(views.observed, **parts))


def without(values: Any, name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def with_model(views: ServerViews, name: str) -> ServerViews:
    return of_members(views, models={**views.members.models, name: model(name, maxBatchSize=4)})


def with_rollout(views: ServerViews) -> ServerViews:
    return of_members(views, rollouts={"a": replace(views.members.rollouts["a"], traffic=0.5)})


def with_binding(views: ServerViews) -> ServerViews:
    (server,) = views.bindings.servers["a"]
    names = {**views.bindings.names, server: views.bindings.names[server] - {"pipe"}}
    return replace(views, bindings=replace(views.bindings, names=names))


def with_revisions(views: ServerViews, part: str) -> ServerViews:
    """Return the views with a server that has `a` no more, or did not have it."""
    (server,) = views.bindings.servers["a"]
    revisions = {server: without(settled()[0].observed.loaded[server], "a")}
    return of_observed(views, **{part: {**getattr(views.observed, part), **revisions}})


def with_reported(views: ServerViews) -> ServerViews:
    (server,) = views.bindings.servers["a"]
    failed = LoadedModel("a", 1, LoadState.UNAVAILABLE, "does not load")
    return of_observed(views, reported={**views.observed.reported, "a": {server: [failed]}})


CHANGES: dict[str, Callable[[ServerViews], ServerViews]] = {
    "model": lambda views: with_model(views, "a"),
    "ensemble": lambda views: of_members(views, ensembles={"pipe": ensemble("pipe", "b", "a")}),
    "rollout": with_rollout,
    "measured": lambda views: of_members(views, measured={"a": MEASURED}),
    "engines": lambda views: of_engines(views, files={"b": {}}),
    "node": lambda views: of_engines(views, nodes={name: Node(name, ()) for name in views.members.engines.nodes}),
    "scaled": lambda views: of_members(views, scaled=frozenset({"a"}) ^ views.members.scaled),
    "binding": with_binding,
    "loaded": lambda views: with_revisions(views, "loaded"),
    "served": lambda views: with_revisions(views, "served"),
    "reported": with_reported,
    "sources": lambda views: of_observed(views, sources=without(views.observed.sources, "a")),
}
"""What a server follows from, each changed alone."""

OTHERS: dict[str, Callable[[ServerViews], ServerViews]] = {
    "nothing": lambda views: views,
    "model": lambda views: with_model(views, "elsewhere"),
    "scaled": lambda views: of_members(views, scaled=views.members.scaled ^ {"elsewhere"}),
    "sources": lambda views: of_observed(views, sources=without(views.observed.sources, "elsewhere")),
}
"""What is of another server."""


def derived(*rounds: tuple[ServerViews, ServerPlan]) -> list[tuple[Any, ...]]:
    """Return from what a value of the server is derived in these rounds, as often as it is."""
    reused, inputs = RoundCache(), list[tuple[Any, ...]]()
    for views, server in rounds:
        reused.next_round()
        of_round = ServerViews(views.members, views.bindings, views.observed, views.runtime, reused)
        of_round.value("values", server, None, lambda *parts: inputs.append(parts))
    return inputs


@pytest.mark.parametrize("part", CHANGES)
def test_a_change_of_what_it_follows_from_is_seen(part: str) -> None:
    views, server = settled()
    before, after = derived((views, server), (CHANGES[part](views), server))
    assert before != after


def test_other_gpus_or_another_runtime_are_seen() -> None:
    views, server = settled()
    assert len(derived((views, server), (views, replace(server, gpus=(7,))))) == 2
    assert len(derived((views, server), (replace(views, runtime=RuntimeName.TRITON), server))) == 2


@pytest.mark.parametrize("part", OTHERS)
def test_a_change_of_another_server_derives_nothing(part: str) -> None:
    views, server = settled()
    assert len(derived((views, server), (OTHERS[part](views), server))) == 1
