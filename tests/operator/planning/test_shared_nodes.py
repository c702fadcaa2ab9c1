"""What must serve takes GPUs of other pools on the same nodes from what comes after it, where their pools allow it."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.operator.planning.declared import linked_node
from tests.operator.planning.test_packing_pools import facts, lone, of, of_key

from argosy.api.pool.packing import Preemption
from argosy.planning.facts import CurrentServer, Device, Group, OtherPools, PoolFacts, PreemptibleGpu, highest_claims
from argosy.planning.nodes.reservations import devices, reserved
from argosy.planning.packing.pools import pack_fleet
from argosy.planning.packing.shared_nodes.claiming import waits_for
from argosy.planning.packing.shared_nodes.preemptible import preemptible_gpus
from argosy.planning.plan import FleetPlan, PoolPlan, replica_counts

LOWER = Preemption.LOWER_PRIORITY


def group(name: str, priority: int = 0, gpus: int = 1, replicas: int = 1, minimum: int | None = None) -> Group:
    return replace(lone(name, gpus, replicas=replicas), priority=priority, minimum=minimum)


def running(pool: PoolFacts) -> PoolFacts:
    """Return the facts of a pool that runs as it would alone."""
    return as_planned(pool, of_key(pack_fleet([pool]), pool.pool))


def as_planned(pool: PoolFacts, plan: PoolPlan) -> PoolFacts:
    loaded = {server.name: frozenset(server.placed) for server in plan.current}
    return replace(pool, current=plan.current, loaded=loaded)


def placed(plan: FleetPlan, pool: str) -> dict[str, int]:
    return dict(replica_counts(of(plan, pool).servers))


ONE = [linked_node("a", 1)]


@pytest.mark.parametrize(("setting", "winner"), [(Preemption.NEVER, "y"), (LOWER, "x")])
def test_the_pool_that_would_lose_decides_whether_what_must_serve_gives_way(setting: Preemption, winner: str) -> None:
    high, low = facts("z", group("x", 500), nodes=ONE), facts("q", group("y", 100), nodes=ONE, preemption=setting)
    for theirs in (low, running(low)):
        plan = pack_fleet([high, theirs])
        settled = pack_fleet([as_planned(high, of(plan, "z")), as_planned(theirs, of(plan, "q"))])
        assert {**placed(settled, "z"), **placed(settled, "q")} == {winner: 1}


def test_an_equal_priority_takes_nothing() -> None:
    theirs = running(facts("q", group("y", 500), nodes=ONE, preemption=LOWER))
    assert placed(pack_fleet([facts("z", group("x", 500), nodes=ONE), theirs]), "q") == {"y": 1}


def test_replicas_beyond_a_minimum_give_way_whatever_the_priorities_and_the_setting() -> None:
    nodes = [linked_node("a", 3)]
    theirs = running(facts("q", group("y", 900, replicas=3, minimum=1), nodes=nodes))
    mine = facts("z", group("x", replicas=3), nodes=nodes)
    plan = pack_fleet([mine, theirs])
    assert placed(plan, "q") == {"y": 1}
    assert len(of(plan, "z").claims) == 2
    settled = pack_fleet([as_planned(mine, of(plan, "z")), as_planned(theirs, of(plan, "q"))])
    assert (placed(settled, "z"), placed(settled, "q")) == ({"x": 2}, {"y": 1})


def test_what_may_serve_takes_nothing_of_other_pools() -> None:
    nodes = [linked_node("a", 2)]
    theirs = running(facts("q", group("y", 0, replicas=2, minimum=0), nodes=nodes))
    plan = pack_fleet([facts("z", group("x", 900, replicas=2, minimum=1), nodes=nodes), theirs])
    assert placed(plan, "q") == {"y": 1}
    assert len(of(plan, "z").claims) == 1


def test_the_lowest_priorities_give_way_and_no_more_than_it_takes() -> None:
    nodes = [linked_node("a", 4)]
    low = [group(f"y{priority}", priority) for priority in (30, 10, 40, 20)]
    theirs = running(facts("q", *low, nodes=nodes, preemption=LOWER))
    plan = pack_fleet([facts("z", group("x", 500, replicas=2), nodes=nodes), theirs])
    assert placed(plan, "q") == {"y30": 1, "y40": 1}
    assert sorted((one.group, one.winner, one.other_pool) for one in of(plan, "q").lost) == [
        ("y10", "x", "n/z"),
        ("y20", "x", "n/z"),
    ]
    assert [(one.group, one.priority, one.other_pool) for one in of(plan, "z").gained] == [
        ("y10", 10, "n/q"),
        ("y20", 20, "n/q"),
    ]


def test_nothing_is_taken_that_would_not_be_enough() -> None:
    nodes = [linked_node("a", 2)]
    theirs = running(facts("q", group("y", 10), group("kept", 900), nodes=nodes, preemption=LOWER))
    plan = pack_fleet([facts("z", group("x", 500, gpus=2), nodes=nodes), theirs])
    assert placed(plan, "q") == {"y": 1, "kept": 1}
    assert not of(plan, "z").claims


def test_what_gives_way_moves_if_it_can() -> None:
    shared, own = linked_node("a", 1), linked_node("b", 1)
    theirs = replace(running(facts("q", group("y"), nodes=[shared], preemption=LOWER)), nodes=(shared, own))
    plan = pack_fleet([facts("z", group("x", 500), nodes=[shared]), theirs])
    assert [server.node for server in of(plan, "q").servers] == ["b"]
    assert not of(plan, "q").lost


def test_what_waits_says_for_which_gpus() -> None:
    gpu = PreemptibleGpu(facts("q").pool, "q-0", (((False, -10), "y"),), 1)
    node = reserved(ONE, (), {gpu.pool: [CurrentServer("q-0", "a", (0,), {"y": (0,)})]})
    plan = pack_fleet([facts("z", group("x", 500), nodes=node)], OtherPools(preemptible={("a", 0): gpu}))
    (waits,) = of(plan, "z").unplaced
    assert waits.reason == "Pending"
    assert (
        "1 GPU that servers of ServingPool n/q give up, because it comes before what they have there" in waits.message
    )


def test_of_many_holders_it_says_how_many_more_there_are() -> None:
    assert waits_for(5, {f"ServingPool n/p{at}" for at in range(5)}, "give up").endswith(
        "5 GPUs that servers of ServingPool n/p0, ServingPool n/p1, ServingPool n/p2, and 2 more give up"
    )


def test_a_server_with_something_that_comes_first_keeps_all_of_its_gpus() -> None:
    """To take one of them away would restart what comes first."""
    both = CurrentServer("q-0", "a", (0, 1), {"y": (0,), "kept": (1,)})
    theirs = facts("q", group("y", 10), group("kept", 900), nodes=[linked_node("a", 2)], preemption=LOWER)
    plan = pack_fleet([replace(theirs, current=(both,))])
    assert {gpu.rank for gpu in preemptible_gpus(theirs, of(plan, "q")).values()} == {(False, -900)}


class Cluster:
    """Pools that are planned one at a time, each with what the others last said, as the operator's rounds are."""

    def __init__(self, pools: Sequence[PoolFacts]) -> None:
        self.facts = {pool.pool: pool for pool in pools}
        self.plans: dict[str, PoolPlan] = {}

    def round(self, key: str) -> bool:
        """Plan one pool, and carry it out. Return whether anything is different."""
        others = {other: pool for other, pool in self.facts.items() if other != key}
        plans = [self.plans[other] for other in sorted(others) if other in self.plans]
        preemptible: dict[Device, PreemptibleGpu] = {}
        for plan in plans:
            preemptible |= preemptible_gpus(others[plan.pool], plan)
        claims = highest_claims(plan.claims for plan in plans)
        preempted = frozenset(device for plan in plans for device in plan.preempted)
        own = next(pool for pool in self.facts.values() if pool.pool == key)
        held = {other: pool.current for other, pool in others.items()}
        nodes = reserved(own.nodes, own.current, held, preempted=preempted)
        (plan,) = pack_fleet([replace(own, nodes=nodes)], OtherPools(claims, preemptible)).pools
        now = (self.plans.get(key), own.current)
        self.plans[key] = plan
        self.facts[own.pool] = as_planned(own, plan)
        assert not self._shared()
        return now != (plan, plan.current)

    def _shared(self) -> list[Device]:
        held = [device for pool in self.facts.values() for device in devices(pool.current)]
        return [device for device in held if held.count(device) > 1]


@pytest.mark.parametrize("seed", range(6))
def test_rounds_settle_and_leave_nothing_to_take(seed: int) -> None:
    numbers = random.Random(seed)
    nodes = [linked_node(name, 2) for name in "ab"]
    pools = [
        facts(
            pool,
            *(
                group(f"{pool}{at}", numbers.choice((0, 10, 20)), replicas=numbers.choice((1, 2)), minimum=1)
                for at in range(3)
            ),
            nodes=nodes,
            preemption=numbers.choice(tuple(Preemption)),
        )
        for pool in "pqr"
    ]
    cluster = Cluster(pools)
    for _ in range(8):
        order = numbers.sample(sorted(cluster.facts), 3)
        changed = [cluster.round(key) for key in order]
        if not any(changed):
            break
    else:
        raise AssertionError("the pools do not settle")
    for pool in cluster.facts.values():
        plan = cluster.plans[pool.pool]
        counts = replica_counts(plan.servers)
        missing = [one.rank(counts[one.name]) for one in pool.groups if counts[one.name] < one.needed]
        others = [other for other in cluster.facts.values() if other.pool != pool.pool]
        ranks = [gpu.rank for one in others for gpu in preemptible_gpus(one, cluster.plans[one.pool]).values()]
        assert not missing or not ranks or min(missing) >= max(ranks)
        assert not plan.claims
