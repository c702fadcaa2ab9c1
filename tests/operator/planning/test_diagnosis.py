"""Every reason not to place something, with its numbers and the way out."""

from dataclasses import replace

import pytest
from tests.operator.planning.declared import gpu_node, linked_node, lone

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.nodes.slices import first_index
from argosy.planning.packing.priorities import pack_by_priority
from argosy.planning.packing.solve import pack
from argosy.planning.requirements import NodeRequirements

POOL = PoolKey("n/p")
GIB = 1 << 30


SMALL = Footprint(10 * GIB, 100)
PAIR = Footprint(60 * GIB, 0, 2)
CPU_ONLY = Node("c", (Gpu(0, 16 * GIB, is_cpu=True),))
TWO = Group("e", (Demand("m", 1, Footprint(60 * GIB, 100)), Demand("n", 1, Footprint(60 * GIB, 100))))
ON_BOTH = (CurrentServer("p-0", "a", (0,), {"x": (0,)}), CurrentServer("p-1", "a", (1,), {"y": (1,)}))


def with_demand(group: Group, **changes: object) -> Group:
    return replace(group, demands=tuple(replace(one, **changes) for one in group.demands))


CASES: dict[str, tuple[PoolFacts, str, list[str]]] = {
    "no nodes": (
        PoolFacts(POOL, (), (lone("x", SMALL),)),
        "NoNodes",
        ["pool n/p has no ready node that its nodeSelector and tolerations match. Add a node"],
    ),
    "no model on a GPU is split that cannot be": (
        PoolFacts(POOL, (linked_node("a", 1),), (with_demand(lone("x", Footprint(70 * GIB)), splittable=False),)),
        "GpuTooSmall",
        ["6 GiB short. Lower memoryHeadroom or the model's memory, or add larger GPUs."],
    ),
    "a model that is split by now": (
        PoolFacts(POOL, (linked_node("a", 2),), (lone("x", Footprint(300 * GIB, 0, 2)),)),
        "GpuTooSmall",
        ["Lower the model's memory, raise parallelism.tensor, or add"],
    ),
    "one instance with too much compute": (
        PoolFacts(
            POOL,
            (Node("m", (Gpu(first_index("3g.40gb", single=False), 40 * GIB, compute=428),)),),
            (lone("x", Footprint(GIB, 500)),),
        ),
        "ComputeTooLarge",
        ["Lower footprint.compute, or add a larger slice, or a whole GPU."],
    ),
    "no usable nodes": (
        PoolFacts(POOL, (), (lone("x", SMALL),), left_out=("a is cordoned", "b is not ready")),
        "NoNodes",
        ["no node of pool n/p takes new models: a is cordoned; b is not ready. Make one of them usable"],
    ),
    "larger than every GPU": (
        PoolFacts(POOL, (linked_node("a", 1),), (lone("x", Footprint(300 * GIB)),)),
        "GpuTooSmall",
        ["Lower the model's memory, spread it"],
    ),
    "no GPUs": (
        PoolFacts(POOL, (CPU_ONLY,), (lone("big", PAIR),)),
        "NoGpus",
        ["big needs 2 GPUs of 60 GiB", "no ready node of pool n/p has a GPU", "Add a node with GPUs"],
    ),
    "too much compute": (
        PoolFacts(POOL, (linked_node("a", 2),), (lone("x", Footprint(GIB, 1200), instances=4),)),
        "ComputeTooLarge",
        ["needs 120 %", "4 instances", "Lower instances to 3"],
    ),
    "GPUs too small": (
        PoolFacts(POOL, (linked_node("a", 2),), (lone("x", Footprint(70 * GIB, 100)),)),
        "GpuTooSmall",
        [
            "needs 70 GiB on one GPU",
            "largest usable is 64 GiB on node a",
            "20 %",
            "6 GiB short",
            "Lower memoryHeadroom",
        ],
    ),
    "too few on a node": (
        PoolFacts(POOL, (linked_node("a", 2), linked_node("b", 3)), (lone("big", Footprint(60 * GIB, 0, 4)),)),
        "TooFewGpusOnANode",
        ["needs 4 GPUs of 60 GiB on one node", "node b has the most that large, 3", "add a node with 4"],
    ),
    "no NVLink": (
        PoolFacts(POOL, (gpu_node("a", 2),), (lone("big", PAIR),)),
        "NoNVLink",
        ["needs 2 GPUs of 60 GiB joined by NVLink", "the most that are joined is 0, on node a", "argosy.dev/nvlink"],
    ),
    "servers too small": (
        PoolFacts(POOL, (linked_node("a", 2),), (lone("big", PAIR),), max_gpus_per_server=1),
        "ServerTooSmall",
        ["maxGpusPerServer lets a server have 1", "Raise maxGpusPerServer to 2"],
    ),
    "an ensemble too large for a server": (
        PoolFacts(POOL, (linked_node("a", 1), linked_node("b", 1)), (TWO,)),
        "GroupTooLarge",
        ["must share one server", "m (60 GiB and 10 % of a GPU)", "node a has the most GPUs, 1", "split the ensemble"],
    ),
    "an ensemble too large for the machine": (
        PoolFacts(POOL, (CPU_ONLY,), (TWO,)),
        "GroupTooLarge",
        ["must share one server", "the most memory of one machine is 12.8 GiB, on c"],
    ),
    "no more servers": (
        PoolFacts(POOL, (linked_node("a", 2),), (lone("x", SMALL, 2),), max_servers=1),
        "ServerLimit",
        ["replica 2 of x", "may have 1 server", "Raise its maxServers"],
    ),
    "replicas apart": (
        PoolFacts(POOL, (linked_node("a", 1),), (lone("x", SMALL, 2),)),
        "ReplicasApart",
        ["replica 2 of x", "replicas stay apart", "raise instances instead", "add a GPU"],
    ),
    "replicas apart, and no room for two": (
        PoolFacts(POOL, (linked_node("a", 1),), (lone("x", Footprint(56 * GIB, 100), 2),)),
        "ReplicasApart",
        ["could have replica 2 of x has one already", "replicas stay apart. Ask for fewer replicas, or add a GPU."],
    ),
    "no free GPUs": (
        PoolFacts(
            POOL, (linked_node("a", 2),), (lone("x", SMALL), lone("y", Footprint(60 * GIB, 0, 1)), lone("big", PAIR))
        ),
        "NoFreeGpus",
        ["needs 2 GPUs of 60 GiB with NVLink on one node", "the largest free is", "of 2 in the pool", "add 2 GPUs"],
    ),
    "no room": (
        PoolFacts(POOL, (linked_node("a", 1),), (lone("x", Footprint(56 * GIB, 100)), lone("y", SMALL))),
        "NoRoom",
        ["y needs 10 GiB and 10 % of a GPU", "nearest miss is GPU 0 of node a with 8 GiB and 90 % free"],
    ),
    "no room on the machine": (
        PoolFacts(POOL, (CPU_ONLY,), (lone("x", SMALL), lone("y", SMALL))),
        "NoRoom",
        ["y needs 10 GiB of memory", "the most that is free is 2.8 GiB on c"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_says_why_with_the_numbers_and_what_to_do(case: str) -> None:
    facts, reason, reported = CASES[case]
    unplaced = pack(facts).unplaced
    assert [item.reason for item in unplaced] == [reason], unplaced
    for words in reported:
        assert words in unplaced[0].message


def occupied(node: Node, *holders: str) -> Node:
    """Return the node, whose last GPUs these holders have."""
    first = len(node.gpus) - len(holders)
    gpus = [replace(gpu, withheld_by="" if at < first else holders[at - first]) for at, gpu in enumerate(node.gpus)]
    return replace(node, gpus=tuple(gpus))


@pytest.mark.parametrize(
    ("facts", "reason", "message"),
    [
        (
            PoolFacts(POOL, (occupied(linked_node("a", 8), *["Pod team/train-0"] * 8),), (lone("x", SMALL),)),
            "NoFreeGpus",
            (
                "x needs 10 GiB and 10 % of a GPU, and of the pool's 8 GPUs others hold 8: 8 by Pod team/train-0. "
                "Free them, or add 1 GPU."
            ),
        ),
        (
            PoolFacts(
                POOL, (occupied(linked_node("a", 4), "Pod a/x", "Pod a/y", "ServingPool b/q"),), (lone("big", PAIR),)
            ),
            "NoFreeGpus",
            "others hold 3: 1 by Pod a/x, 1 by Pod a/y, 1 by ServingPool b/q. Free them, or add 2 GPUs.",
        ),
        (
            PoolFacts(POOL, (occupied(linked_node("a", 6), *(f"Pod a/{n}" for n in range(5))),), (lone("big", PAIR),)),
            "NoFreeGpus",
            "others hold 5: 1 by Pod a/0, 1 by Pod a/1, 1 by Pod a/2, 2 by 2 others.",
        ),
        (
            PoolFacts(POOL, (occupied(linked_node("a", 2), "Pod a/x"),), (lone("big", Footprint(60 * GIB, 0, 4)),)),
            "TooFewGpusOnANode",
            "node a has the most that large, 2.",
        ),
        (
            PoolFacts(POOL, (occupied(linked_node("a", 2), "Pod a/x"),), (lone("x", Footprint(60 * GIB, 0, 1), 4),)),
            "NoFreeGpus",
            "of the pool's 2 GPUs others hold 1: 1 by Pod a/x.",
        ),
    ],
)
def test_gpus_of_others_are_named(facts: PoolFacts, reason: str, message: str) -> None:
    first = pack(facts).unplaced[0]
    assert (first.reason, message in first.message) == (reason, True), first


def test_what_cannot_be_used_is_held_by_nothing() -> None:
    mig = "MIG (nvidia.com/mig-9g.90gb, a profile that is not supported)"
    (first,) = pack(PoolFacts(POOL, (occupied(linked_node("a", 2), mig, mig),), (lone("x", SMALL),))).unplaced
    assert f"of the pool's 2 GPUs 2 cannot be used: 2 for {mig}. Make them usable, or add 1 GPU." in first.message
    (first,) = pack(PoolFacts(POOL, (occupied(linked_node("a", 2), "Pod a/x", mig),), (lone("x", SMALL),))).unplaced
    assert f"GPUs others hold 1: 1 by Pod a/x and 1 cannot be used: 1 for {mig}. Free them, make" in first.message


def test_what_would_not_fit_without_others_either_still_names_them() -> None:
    groups = (lone("x", Footprint(56 * GIB, 100)), lone("z", Footprint(56 * GIB, 100)), lone("y", SMALL))
    facts = PoolFacts(POOL, (occupied(linked_node("a", 2), "Pod a/x"),), groups, max_servers=1)
    (result,) = pack(replace(facts, groups=(*groups[:1], groups[2]))).unplaced
    assert "others hold 1: 1 by Pod a/x" in result.message


def test_the_model_of_higher_priority_on_the_gpu_is_named() -> None:
    def of(name: str, priority: int, replicas: int, minimum: int = 1) -> Group:
        group = lone(name, Footprint(gpus=1), replicas)
        return replace(group, priority=priority, minimum=minimum)

    every = (of("equal", 0, 2, 2), of("higher", 5, 2, 2), of("highest", 10, 2), of("low", 0, 2))
    facts = PoolFacts(POOL, (linked_node("a", 7),), every)
    (result,) = pack(facts).unplaced
    assert result.group == "low"
    # First comes the one that has a replica more than it has to have.
    start = "it gives way to higher priorities than its 0, such as highest (10) and higher (5): low needs 1 GPU"
    assert result.message.startswith(start)
    alone = replace(facts, groups=(of("equal", 0, 6, 6), of("low", 0, 2)))
    (result,) = pack(alone).unplaced
    assert result.message.startswith("low needs 1 GPU")


def test_of_many_of_a_higher_priority_that_one_is_named_which_frees_memory() -> None:
    small = (replace(lone(f"small-{n}", Footprint(8 * GIB, 0), 2), priority=10, minimum=1) for n in range(40))
    large = replace(lone("large", Footprint(60 * GIB, 0)), priority=10)
    low = replace(lone("low", Footprint(60 * GIB, 0), 2), minimum=1)
    (result,) = pack(PoolFacts(POOL, tuple(linked_node(name, 6) for name in "ab"), (*small, large, low))).unplaced
    assert result.message.startswith("it gives way to large, whose priority is 10 and not 0: low needs 60 GiB")


def test_of_two_losers_both_messages_name_their_own_winner() -> None:
    on = {"a": "high", "b": "highest"}
    nodes = {name: replace(linked_node(name, 1), labels={"zone": name}) for name in on}

    def of(name: str, zone: str, priority: int, gibibytes: int = 60) -> Group:
        demand = Demand(name, 1, Footprint(gibibytes * GIB, 100), requires=NodeRequirements((("zone", zone),)))
        return Group(name, (demand,), priority=priority)

    every = (of("high", "a", 5), of("highest", "b", 9), of("low-a", "a", 0), of("low-b", "b", 0, 50))
    results = {one.group: one.message for one in pack(PoolFacts(POOL, tuple(nodes.values()), every)).unplaced}
    assert results["low-a"].startswith("it gives way to high, whose priority is 5 and not 0")
    assert results["low-b"].startswith("it gives way to highest, whose priority is 9 and not 0")


def test_several_of_a_higher_priority_are_named_together() -> None:
    high = (replace(lone(f"high-{at}", Footprint(60 * GIB, 100)), priority=at) for at in (3, 5))
    low = lone("low", Footprint(60 * GIB, 100), 2)
    results = pack(PoolFacts(POOL, (linked_node("a", 2),), (*high, low))).unplaced
    start = "it gives way to higher priorities than its 0, such as high-3 (3) and high-5 (5): low needs 60 GiB"
    assert [one.message.startswith(start) for one in results] == [True, True]


def test_what_is_declared_beyond_a_minimum_gives_way_and_says_so() -> None:
    beyond = replace(lone("x", Footprint(60 * GIB, 100), 2), minimum=1, declared=2, priority=1000)
    facts = PoolFacts(POOL, (linked_node("a", 2),), (beyond, lone("y", Footprint(60 * GIB, 100))))
    ranked = pack_by_priority([facts])
    (result,) = ranked.plan.pools[0].unplaced
    assert not ranked.shortfalls
    assert result.message.startswith("replicas beyond minReplicas give way to what comes first, such as y: x needs")
    scaled = pack_by_priority([replace(facts, groups=(replace(beyond, declared=0), *facts.groups[1:]))])
    assert ([*scaled.shortfalls], scaled.plan.pools[0].unplaced) == ([(POOL, "x")], ())


def test_the_nearest_miss_is_no_gpu_that_has_another_replica() -> None:
    groups = (
        replace(lone("m", Footprint(12 * GIB, 400), 2), priority=1),
        lone("k1", Footprint(41 * GIB, 200)),
        lone("k2", Footprint(57 * GIB, 500)),
    )
    running = (
        CurrentServer("p-0", "a", (0,), {"k2": (0,)}),
        CurrentServer("p-1", "a", (1,), {"k1": (1,), "m": (1,)}),
    )
    (result,) = pack(PoolFacts(POOL, (linked_node("a", 2),), groups, current=running)).unplaced
    assert "the nearest miss is GPU 0 of node a with 7 GiB and 50 % free" in result.message


def test_a_model_of_higher_priority_on_another_gpu_is_not_named() -> None:
    high = replace(lone("high", SMALL), priority=10)
    large = (lone(name, Footprint(60 * GIB, 100)) for name in ("one", "other", "third"))
    on_b = CurrentServer("p-0", "b", (0,), {"high": (0,)})
    facts = PoolFacts(POOL, (linked_node("a", 2), linked_node("b", 1, memory=30)), (high, *large), current=(on_b,))
    (result,) = pack(facts).unplaced
    assert result.message.startswith("third needs 60 GiB")
