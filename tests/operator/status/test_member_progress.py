"""All that the status of a member is derived from is compared with the round before: each part by itself."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import POOL, START, Cluster

from argosy.api import ServingPool
from argosy.api.statusparts import PreemptionStatus
from argosy.planning.demand.measured import MeasuredMemory
from argosy.planning.migration.state import Note
from argosy.planning.plan import Unplaced
from argosy.reconcile.decide import decide
from argosy.status.progress.member_progress import NamedProgress, named_progress, narrowed
from argosy.status.progress.pool_progress import PoolProgress
from argosy_agent.contract import LoadedModel, LoadState
from argosy_agent.contract.builds import ModelShape

NAMES = ("pipe", "a", "b")
LACKING = Unplaced("a", ("a",), "NoRoom", "no room")
MEASURED = MeasuredMemory(1 << 30, 1, START, "", 80 << 30)
Change = Callable[[PoolProgress], PoolProgress]


@cache
def settled() -> PoolProgress:
    """Return a pool of which all serves; `a` has a rollout, was just measured, and lacks a further replica."""
    cluster, here = Cluster((gpu_node("n"),)), pool()
    assert isinstance(here, ServingPool)
    cluster.settle([here, model("a", rollout={"steps": [{"traffic": "10%"}]}), model("b"), ensemble("pipe", "a", "b")])
    progress = PoolProgress.of(here, decide(cluster.snapshot, cluster.now).migrations[POOL])
    return of_members(replace(progress, unplaced={"a": (LACKING,)}), measured={"a": MEASURED})


def of_state(progress: PoolProgress, **parts: Any) -> PoolProgress:
    return replace(progress, state=replace(progress.state, **parts))


def of_members(progress: PoolProgress, **parts: Any) -> PoolProgress:
    return of_state(progress, members=replace(progress.members, **parts))


def of_observed(progress: PoolProgress, **parts: Any) -> PoolProgress:
    return of_state(progress, observed=replace(progress.observed, **parts))


def server_of(progress: PoolProgress) -> str:
    (server,) = progress.state.bindings.servers["a"]
    return server


def with_member(progress: PoolProgress) -> PoolProgress:
    return of_members(progress, models={**progress.members.models, "a": model("a", maxBatchSize=4)})


def with_rollout(progress: PoolProgress) -> PoolProgress:
    return of_members(progress, rollouts={"a": replace(progress.members.rollouts["a"], traffic=0.5)})


def with_server(progress: PoolProgress) -> PoolProgress:
    name = server_of(progress)
    return replace(progress, servers={name: replace(progress.servers[name], node="other")})


def with_reported(progress: PoolProgress) -> PoolProgress:
    failed = LoadedModel("a", 1, LoadState.UNAVAILABLE, "does not load")
    return of_observed(progress, reported={**progress.observed.reported, "a": {server_of(progress): [failed]}})


def with_report(progress: PoolProgress) -> PoolProgress:
    name = server_of(progress)
    return of_observed(progress, reports={name: replace(progress.observed.reports[name], url="http://other")})


CHANGES: dict[str, Change] = {
    "member": with_member,
    "runs": lambda progress: of_members(progress, runs={"pipe": ("a", "b", "c")}),
    "rollout": with_rollout,
    "shape": lambda progress: of_members(progress, shapes={"a": ModelShape(1, 1, 1, 1, 1)}),
    "measured": lambda progress: of_members(progress, measured={"a": replace(MEASURED, per_instance=1)}),
    "servers": with_server,
    "reported": with_reported,
    "reports": with_report,
    "outdated": lambda progress: of_observed(progress, outdated=frozenset({(server_of(progress), "a")})),
    "notes": lambda progress: replace(progress, notes={(server_of(progress), "a"): Note("it waits")}),
    "pinned": lambda progress: replace(progress, pinned={"a": frozenset({1})}),
    "unplaced": lambda progress: replace(progress, unplaced={"a": (replace(LACKING, message="less room"),)}),
    "remedies": lambda progress: replace(progress, remedies={"a": "one more node"}),
    "lost_to": lambda progress: replace(
        progress, lost_to={"a": PreemptionStatus(name="b", priority=1, time="2026-01-01T00:00:00Z")}
    ),
    "priority": lambda progress: of_state(progress, priorities={**progress.state.priorities, "a": 7}),
}


def differing(before: PoolProgress, after: PoolProgress, now: datetime, later: datetime) -> set[str]:
    """Return the fields of what is compared that differ for one of the members."""
    pairs = [(named_progress(name, before, now), named_progress(name, after, later)) for name in NAMES]
    return {
        field for one, other in pairs for field in NamedProgress._fields if getattr(one, field) != getattr(other, field)
    }


@pytest.mark.parametrize("field", CHANGES)
def test_what_a_status_is_derived_from_is_compared(field: str) -> None:
    before = settled()
    after = CHANGES[field](before)
    assert narrowed(after, NAMES) != narrowed(before, NAMES)
    assert differing(before, after, START, START) == {field}


def test_it_is_compared_whether_a_model_was_measured_for_long() -> None:
    assert differing(settled(), settled(), START, START + timedelta(hours=2)) == {"measured_early"}


def test_every_field_that_is_compared_has_a_change_here() -> None:
    assert {*CHANGES, "measured_early"} == set(NamedProgress._fields)


def test_what_a_status_does_not_follow_from_changes_nothing() -> None:
    before = settled()
    assert not differing(before, of_members(before, moved={"a": True}, sizes={}), START, START)
