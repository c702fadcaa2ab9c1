"""A fleet that churned is consolidated, and what serves stays reachable in every round."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.operator.planning import simulated_cluster
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster
from tests.properties import examples

from argosy.api import Resource
from argosy.api.consolidationstatus import ConsolidationMove, ConsolidationStatus
from argosy.api.status import ServingPoolStatus
from argosy.api.values.reuse import RoundCache
from argosy.reconcile import RoundOutcome, reconcile
from argosy.replay.codec import decoded_snapshot, encoded
from argosy.snapshot import FleetSnapshot

SIZES = {"a0": 40, "b0": 40, "c0": 40, "a1": 20, "b1": 20, "c1": 20}
LEFT = ("c0", "a1", "b1", "c1")


def packing(mode: str, generation: int = 1, **more: Any) -> Resource:
    """Return the pool with this mode."""
    settings = {"consolidate": mode, "consolidateAfter": "5s", **more}
    return pool(metadata={"generation": generation}, packing=settings)


def churned(nodes: Sequence[str] = "abc") -> Cluster:
    """Return a fleet of three GPUs, of which two would do since two models left."""
    cluster = Cluster(tuple(gpu_node(name, 1) for name in nodes))
    cluster.settle([packing("Off"), *(model(name, memory=size) for name, size in SIZES.items())])
    cluster.settle([packing("Off"), *left()])
    assert len(cluster.servers) == 3
    return cluster


def left() -> list[Resource]:
    """Return the models that stayed."""
    return [model(name, memory=SIZES[name]) for name in LEFT]


def status_of(cluster: Cluster) -> ConsolidationStatus:
    """Return what the pool's status says of its consolidation."""
    assert cluster.outcome is not None
    status = cluster.outcome.statuses["ServingPool default/p"]
    assert isinstance(status, ServingPoolStatus)
    return status.consolidation or ConsolidationStatus()


def run(cluster: Cluster, resources: Sequence[Resource], seconds: int = 60) -> None:
    """Run rounds in which some server that was routed before stays routed, for each name."""
    for _ in range(seconds):
        before = cluster.routed()
        cluster.tick(resources)
        after = cluster.routed()
        assert all(servers & after[name] for name, servers in before.items())


def test_auto_moves_what_recommend_named_and_nothing_is_unreachable() -> None:
    cluster = churned()
    run(cluster, [packing("Recommend", 2), *left()], 10)
    named = status_of(cluster)
    assert (named.gpus, [move.name for move in named.moves]) == (1, ["a1"])
    assert len(cluster.servers) == 3
    auto = [packing("Auto", 3), *left()]
    cluster.tick(auto)
    assert status_of(cluster).moving == named.moves
    run(cluster, auto, 40)
    assert len(cluster.servers) == 2
    assert cluster.routed().keys() == set(LEFT)
    done = status_of(cluster)
    assert (done.moving, done.gpus, done.last_hour[0].moves) == ((), 0, 1)
    assert cluster.outcome is not None
    assert cluster.outcome.plan.gpus_used == 2


PAIRS = {"a0": 50, "b0": 50, "c0": 50, "d0": 50, "a1": 28, "b1": 29, "c1": 29, "d1": 29}


def in_two_pairs() -> tuple[Cluster, list[Resource]]:
    """Return a fleet of four GPUs, of which two pairs could each do with one, and what it serves. The cheapest model to
    move never loads again.
    """
    cluster = Cluster(tuple(gpu_node(name, 1) for name in "abcd"))
    cluster.settle([packing("Off"), *(model(name, memory=size) for name, size in PAIRS.items())])
    stay: list[Resource] = [model(name, memory=PAIRS[name]) for name in ("b0", "c0", "a1", "d1")]
    cluster.settle([packing("Off"), *stay])
    cluster.refuses = frozenset({("a1", 1)})
    return cluster, stay


def begun_moves(cluster: Cluster, resources: Sequence[Resource], hours: int) -> list[tuple[int, str]]:
    """Return the moves that begin within some hours, each with the hour from the start in which it does."""
    start, last, begun = cluster.now, "", list[tuple[int, str]]()
    while cluster.now - start < timedelta(hours=hours):
        cluster.tick(resources, 5 if cluster.outcome and status_of(cluster).moving else 60)
        status = status_of(cluster)
        if status.moving_since and status.moving_since != last:
            last = status.moving_since
            begun += [((cluster.now - start) // timedelta(hours=1), move.name) for move in status.moving]
    return begun


def test_after_a_move_that_failed_others_go_on() -> None:
    cluster, stay = in_two_pairs()
    begun = begun_moves(cluster, [packing("Auto", 2), *stay], 4)
    assert begun == [(0, "a1"), (1, "d1")]
    (failed,) = status_of(cluster).failed
    assert (failed.name, failed.to_node, failed.failures) == ("a1", "b", 1)
    again = [packing("Auto", 2), *stay[:2], model("a1", 2, PAIRS["a1"]), stay[3]]
    run(cluster, again, 60)
    assert status_of(cluster).failed == ()


@pytest.mark.parametrize("mode", ["Off", "Recommend"])
def test_another_mode_forgets_neither_moves_nor_failures(mode: str) -> None:
    cluster, stay = in_two_pairs()
    while not (cluster.outcome and status_of(cluster).failed):
        cluster.tick([packing("Auto", 2), *stay])
    before = status_of(cluster)
    assert (len(before.last_hour), len(before.failed)) == (1, 1)
    run(cluster, [packing(mode, 3), *stay], 20)
    run(cluster, [packing("Auto", 4), *stay], 20)
    now = status_of(cluster)
    assert (now.last_hour, now.failed, now.paused_until) == (before.last_hour, before.failed, before.paused_until)


def test_off_says_nothing_and_moves_nothing() -> None:
    cluster = churned()
    run(cluster, [packing("Off", 2), *left()], 20)
    assert status_of(cluster) == ConsolidationStatus()
    assert len(cluster.servers) == 3


def test_an_operator_that_restarts_goes_on_with_a_move() -> None:
    cluster, auto = churned(), [packing("Auto", 2), *left()]
    for _ in range(60):
        before = cluster.routed()
        cluster.tick(auto)
        cluster.forget()
        after = cluster.routed()
        assert all(servers & after[name] for name, servers in before.items())
    assert len(cluster.servers) == 2
    assert [record.moves for record in status_of(cluster).last_hour] == [1]


def test_a_move_to_where_it_does_not_load_is_taken_back_and_stops_the_others() -> None:
    cluster, auto = churned(), [packing("Auto", 2), *left()]
    while not status_of(cluster).moving:
        cluster.tick(auto)
    cluster.refuses = frozenset({("a1", 1)})
    run(cluster, auto, 40)
    failed = status_of(cluster)
    assert failed.failure == "a1 from p-0 on node a to p-1 on node b: does not load"
    assert cluster.routed()["a1"] == {"p-0"}
    assert len(cluster.servers) == 3
    cluster.refuses = frozenset()
    run(cluster, auto, 60)
    assert cluster.routed()["a1"] == {"p-0"}
    cluster.now += timedelta(hours=2)
    run(cluster, auto, 60)
    assert (len(cluster.servers), status_of(cluster).failure) == (2, "")
    assert status_of(cluster).failed == ()


def test_a_move_that_does_not_arrive_is_taken_back_after_fifteen_minutes() -> None:
    cluster, auto = churned(), [packing("Auto", 2), *left()]
    while not status_of(cluster).moving:
        cluster.tick(auto)
    cluster.unlabelled = frozenset({"p-1"})
    run(cluster, auto, 30)
    assert status_of(cluster).moving
    cluster.now += timedelta(minutes=15)
    run(cluster, auto, 20)
    assert (
        status_of(cluster).failure == "a1 from p-0 on node a to p-1 on node b: it is not reached there after 15 minutes"
    )
    assert cluster.routed()["a1"] == {"p-0"}


@pytest.mark.parametrize("error", ["silent", "unplaced", "unready"])
def test_nothing_moves_while_the_pool_is_not_at_rest(error: str) -> None:
    cluster, auto = churned(), [packing("Auto", 2), *left()]
    if error == "unplaced":
        auto.append(model("large", memory=70))
    if error == "unready":
        cluster.unready = frozenset({"p-2"})
    if error == "silent":
        cluster.nodes = tuple(replace(node, stale=node.name == "c") for node in cluster.nodes)
    for _ in range(30):
        cluster.tick(auto)
        assert not status_of(cluster).moving
    assert "nothing is searched for: " in status_of(cluster).message


def test_a_model_in_a_rollout_stays_where_it_is() -> None:
    cluster = churned()
    steps = {"steps": [{"traffic": "10%", "pause": "10m"}, {"traffic": "100%"}]}
    staged = [model(name, memory=SIZES[name], rollout=steps if name == "a1" else None) for name in LEFT]
    cluster.settle([packing("Off", 2), *staged])
    second = [model("a1", 2, SIZES["a1"], rollout=steps), *staged[:1], *staged[2:]]
    for _ in range(40):
        cluster.tick([packing("Auto", 3), *second])
        assert "a1" not in {move.name for move in status_of(cluster).moving}


def test_an_ensemble_moves_with_all_of_its_models() -> None:
    cluster = Cluster(tuple(gpu_node(name, 1) for name in "abc"))
    pair = [model("s", memory=8), model("t", memory=8), ensemble("e", "s", "t")]
    large = [model("x", memory=60), model("y", memory=60)]
    cluster.settle([packing("Off"), *large, *pair])
    cluster.settle([packing("Off"), model("x", memory=40), large[1], *pair])
    resources = [packing("Auto", 2), model("x", memory=40), large[1], *pair]
    run(cluster, resources, 80)
    routed = cluster.routed()
    assert routed["e"] == routed["s"] == routed["t"]
    assert len(cluster.servers) == 2


def test_a_bundle_replays_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[tuple[FleetSnapshot, datetime, RoundOutcome]] = []

    def recorded(snapshot: FleetSnapshot, now: datetime, cache: RoundCache) -> RoundOutcome:
        outcome = reconcile(snapshot, now, cache=cache)
        rounds.append((snapshot, now, outcome))
        return outcome

    cluster, auto = churned(), [packing("Auto", 2), *left()]
    monkeypatch.setattr(simulated_cluster, "reconcile", recorded)
    while not status_of(cluster).moving:
        cluster.tick(auto)
    snapshot, now, first = rounds[-1]
    assert encoded(reconcile(decoded_snapshot(encoded(snapshot)), now)) == encoded(first)


@examples(3)
@given(st.lists(st.tuples(st.integers(4, 40), st.booleans()), min_size=4, max_size=10))
def test_whatever_leaves_the_rest_is_repacked_without_a_gap(models: list[tuple[int, bool]]) -> None:
    cluster = Cluster(tuple(gpu_node(name, 2) for name in "abcd"))
    every = [(model(f"m{at}", memory=size), stays) for at, (size, stays) in enumerate(models)]
    cluster.settle([packing("Off"), *(one for one, _ in every)])
    stay = [one for one, stays in every if stays]
    cluster.settle([packing("Off"), *stay])
    before = len(cluster.servers)
    auto = [packing("Auto", 2), *stay]
    run(cluster, auto, 150)
    assert not status_of(cluster).moving
    assert not status_of(cluster).failure
    assert len(cluster.servers) <= before
    assert cluster.routed().keys() == {one.name for one in stay}
    servers = cluster.serving()
    run(cluster, auto, 30)
    assert cluster.serving() == servers


def to_where(moves: Iterable[ConsolidationMove], servers: Collection[str]) -> list[tuple[str, str, str, int]]:
    """Return the moves, without the names of servers that begin for them: those of servers that end may be used again
    by then.
    """
    targets = ((move, move.to_server if move.to_server in servers else "new") for move in moves)
    return [(move.name, move.from_server, target, move.bytes) for move, target in targets]


def moved_by_auto(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[tuple[ConsolidationMove, ...]]:
    """Run rounds until nothing is moved any more, and yield the moves of each step when it begins."""
    before, idle = tuple[ConsolidationMove, ...](), 0
    while idle < 30:
        cluster.tick(resources)
        moving = status_of(cluster).moving
        if moving and not before:
            yield moving
        before, idle = moving, 0 if moving else idle + 1


@examples(5)
@example(102)
@given(st.integers(0, 100_000))
def test_recommend_names_exactly_what_auto_does(seed: int) -> None:
    random = Random(seed)
    nodes = [gpu_node(name, random.choice((1, 2, 4))) for name in "abcd"]
    every: list[Resource] = [
        model(f"m{at:02}", memory=random.choice((4, 8, 16, 24, 32, 40)), replicas=random.choice((1, 1, 1, 2)))
        for at in range(random.randint(6, 16))
    ]
    stay = [one for one in every if random.random() < 0.6]
    cluster = Cluster(tuple(nodes))
    cluster.settle([packing("Off"), *every])
    cluster.settle([packing("Off"), *stay])
    run(cluster, [packing("Recommend", 2), *stay], 20)
    named = status_of(cluster).moves
    servers = {server for server in cluster.servers if server not in {move.from_server for move in named}}
    done = [move for step in moved_by_auto(cluster, [packing("Auto", 3), *stay]) for move in step]
    assert to_where(done, servers) == to_where(named, servers)
    run(cluster, [packing("Recommend", 4), *stay], 20)
    assert status_of(cluster).moves == ()
