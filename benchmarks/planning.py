"""`python -m benchmarks.planning [--json FILE]`: what a plan costs in a large fleet, also where it is too small.

CPU seconds of one round of planning, facts to plan, in a pool of nodes with 8 GPUs that runs and stays as it is, with a
model on each GPU:

round_s_GPUS_unplaced_PERCENT   with so many models more than there are GPUs, each with the reason that it is not placed
growth_unplaced_PERCENT         the exponent by which that grows with the number of GPUs; 1 is in proportion
change_one_s_GPUS               one model is changed in the pool that has room for all
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.numbers import report

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.packing.priorities import pack_by_priority
from argosy.planning.plan import PoolPlan

SIZES = (800, 1600, 8000)
OVERLOADS = (0, 25, 100)
_PER_NODE = 8
_GIB = 1 << 30


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    options = _parser().parse_args(argv)
    figures = measured(options.gpus, options.rounds)
    report(figures, options.json)
    return 0


def measured(sizes: Sequence[int], rounds: int) -> dict[str, float]:
    """Return all numbers by name: the least of several rounds, which other load of the machine disturbed least."""
    figures: dict[str, float] = {}
    for overload in OVERLOADS:
        for gpus in sizes:
            fleet, missing = running(gpus, overload), gpus * overload // 100
            figures[f"round_s_{gpus}_unplaced_{overload}"] = min(_cost(fleet, missing) for _ in range(rounds))
        few, many = sizes[0], sizes[-1]
        change = figures[f"round_s_{many}_unplaced_{overload}"] / figures[f"round_s_{few}_unplaced_{overload}"]
        figures[f"growth_unplaced_{overload}"] = math.log(change) / math.log(many / few) if many > few else 1.0
    changed = one_changed(running(sizes[-1], 0))
    return figures | {f"change_one_s_{sizes[-1]}": min(_cost(changed, 0) for _ in range(rounds))}


def running(gpus: int, overload: int) -> PoolFacts:
    """Return a pool whose servers use all GPUs with a model on each; `overload` is the percentage of further models."""
    names = [f"m-{number:05}" for number in range(gpus + gpus * overload // 100)]
    every = tuple(range(_PER_NODE))
    nodes = tuple(
        Node(f"n-{number:04}", tuple(Gpu(index, 80 * _GIB) for index in every), nvlink=(frozenset(every),))
        for number in range(gpus // _PER_NODE)
    )
    return PoolFacts(
        PoolKey("bench/fleet"),
        nodes,
        tuple(Group(name, (Demand(name, 1, Footprint(60 * _GIB)),)) for name in names),
        max_gpus_per_server=_PER_NODE,
        current=tuple(
            CurrentServer(f"fleet-{at}", node.name, every, {names[at * _PER_NODE + gpu]: (gpu,) for gpu in every})
            for at, node in enumerate(nodes)
        ),
    )


def one_changed(facts: PoolFacts) -> PoolFacts:
    """Return the same facts where a model in the middle has a new version that takes another size."""
    at = len(facts.groups) // 2
    group = facts.groups[at]
    changed = replace(group, demands=(replace(group.demands[0], version=2, footprint=Footprint(50 * _GIB)),))
    return replace(facts, groups=(*facts.groups[:at], changed, *facts.groups[at + 1 :]))


def _cost(facts: PoolFacts, missing: int) -> float:
    begun = time.process_time()
    (plan,) = pack_by_priority([facts]).plan.pools
    taken = time.process_time() - begun
    _check(facts, plan, missing)
    return taken


def _check(facts: PoolFacts, plan: PoolPlan, missing: int) -> None:
    """Raise AssertionError where what runs was moved, or where not all models without a slot are reported."""
    assert len(plan.unplaced) == missing
    assert {server.name: server.placed for server in plan.current} == {
        server.name: server.placed for server in facts.current
    }
    assert all(replica.group in replica.message for replica in plan.unplaced)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__)
    parser.add_argument("--gpus", type=int, nargs="+", default=SIZES, help="Sizes. Default: 800 1600 8000.")
    parser.add_argument("--rounds", type=int, default=3, help="Rounds, of which the least counts. Default: 3.")
    parser.add_argument("--json", type=Path, help="Write the numbers to this file.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
