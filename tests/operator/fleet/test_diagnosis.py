"""Every reason not to place something, with its numbers and the way out."""

import pytest

from argosy.fleet.facts import CurrentServer, Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.fleet.packing.solve import pack

GIB = 1 << 30


def node(name: str = "a", gpus: int = 2, size: int = 80, linked: bool = True) -> Node:
    joined = (frozenset(range(gpus)),) if linked and gpus > 1 else ()
    return Node(name, tuple(Gpu(i, size * GIB) for i in range(gpus)), nvlink=joined)


def lone(name: str, need: Footprint, replicas: int = 1, instances: int = 1) -> Group:
    return Group(name, (Demand(name, 1, need, replicas, instances),), replicas)


SMALL = Footprint(10 * GIB, 100)
PAIR = Footprint(60 * GIB, 0, 2)
CPU_ONLY = Node("c", (Gpu(0, 16 * GIB, is_cpu=True),))
TWO = Group("e", (Demand("m", 1, Footprint(60 * GIB, 100)), Demand("n", 1, Footprint(60 * GIB, 100))))
ON_BOTH = (CurrentServer("p-0", "a", (0,), {"x": (0,)}), CurrentServer("p-1", "a", (1,), {"y": (1,)}))

CASES: dict[str, tuple[PoolFacts, str, list[str]]] = {
    "no nodes": (
        PoolFacts("p", (), (lone("x", SMALL),)),
        "NoNodes",
        ["pool p has no ready node", "nodeSelector", "add a node"],
    ),
    "no GPUs": (
        PoolFacts("p", (CPU_ONLY,), (lone("big", PAIR),)),
        "NoGpus",
        ["big needs 2 GPUs of 60 GiB", "no ready node of pool p has a GPU", "Add a node with GPUs"],
    ),
    "too much compute": (
        PoolFacts("p", (node(),), (lone("x", Footprint(GIB, 1200), instances=4),)),
        "ComputeTooLarge",
        ["needs 120 %", "4 instances", "Lower instances to 3"],
    ),
    "GPUs too small": (
        PoolFacts("p", (node(),), (lone("x", Footprint(70 * GIB, 100)),)),
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
        PoolFacts("p", (node("a", 2), node("b", 3)), (lone("big", Footprint(60 * GIB, 0, 4)),)),
        "TooFewGpusOnANode",
        ["needs 4 GPUs of 60 GiB on one node", "node b has the most that large, 3", "add a node with 4"],
    ),
    "no NVLink": (
        PoolFacts("p", (node(linked=False),), (lone("big", PAIR),)),
        "NoNVLink",
        ["needs 2 GPUs of 60 GiB joined by NVLink", "the most that are joined is 0, on node a", "argosy.dev/nvlink"],
    ),
    "servers too small": (
        PoolFacts("p", (node(),), (lone("big", PAIR),), max_gpus_per_server=1),
        "ServerTooSmall",
        ["maxGpusPerServer lets a server have 1", "Raise maxGpusPerServer to 2"],
    ),
    "an ensemble too large for a server": (
        PoolFacts("p", (node("a", 1), node("b", 1)), (TWO,)),
        "GroupTooLarge",
        ["must share one server", "m (60 GiB and 10 % of a GPU)", "node a has the most GPUs, 1", "split the ensemble"],
    ),
    "an ensemble too large for the machine": (
        PoolFacts("p", (CPU_ONLY,), (TWO,)),
        "GroupTooLarge",
        ["must share one server", "the most memory of one machine is 12.8 GiB, on c"],
    ),
    "no more servers": (
        PoolFacts("p", (node(),), (lone("x", SMALL, 2),), max_servers=1),
        "ServerLimit",
        ["replica 2 of x", "maxServers is 1", "Raise maxServers"],
    ),
    "replicas apart": (
        PoolFacts("p", (node("a", 1),), (lone("x", SMALL, 2),)),
        "ReplicasApart",
        ["replica 2 of x", "replicas stay apart", "add a GPU"],
    ),
    "no free GPUs": (
        PoolFacts("p", (node(),), (lone("x", SMALL), lone("y", Footprint(60 * GIB, 0, 1)), lone("big", PAIR))),
        "NoFreeGpus",
        ["needs 2 GPUs of 60 GiB with NVLink on one node", "the largest free is", "of 2 in the pool", "add 2 GPUs"],
    ),
    "no room": (
        PoolFacts("p", (node("a", 1),), (lone("x", Footprint(56 * GIB, 100)), lone("y", SMALL))),
        "NoRoom",
        ["y needs 10 GiB and 10 % of a GPU", "nearest miss is GPU 0 of node a with 8 GiB and 90 % free"],
    ),
    "no room on the machine": (
        PoolFacts("p", (CPU_ONLY,), (lone("x", SMALL), lone("y", SMALL))),
        "NoRoom",
        ["y needs 10 GiB of memory", "the most that is free is 2.8 GiB on c"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_says_why_with_the_numbers_and_what_to_do(case: str) -> None:
    facts, reason, said = CASES[case]
    unplaced = pack(facts).unplaced
    assert [each.reason for each in unplaced] == [reason], unplaced
    for words in said:
        assert words in unplaced[0].message
