"""Running fleets for tests of consolidation: servers with models at given places, and random ones that churned."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from tests.operator.planning.declared import GIB, gpu_node, lone

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Footprint, Group, Node, PoolFacts
from argosy.planning.packing.solve import pack

POOL = PoolKey("default/p")


def running(
    servers: Mapping[str, tuple[str, tuple[int, ...], Mapping[str, tuple[int, ...]]]],
    groups: Sequence[Group],
    nodes: Sequence[Node],
    **limits: int,
) -> PoolFacts:
    """Return the facts of a pool with these servers: by name the node, the GPUs, and those of each model."""
    current = tuple(CurrentServer(name, node, gpus, placed) for name, (node, gpus, placed) in servers.items())
    return PoolFacts(POOL, tuple(nodes), tuple(groups), headroom=0, current=current, **limits)


def shared(name: str, gib: int, compute: int = 100, replicas: int = 1) -> Group:
    """Return the group of a model that shares a GPU."""
    return lone(name, Footprint(gib * GIB, compute), replicas)


def exclusive(name: str, gpus: int = 1, gib: int = 40) -> Group:
    """Return the group of a model with GPUs of its own."""
    return lone(name, Footprint(gib * GIB, 0, gpus))


def churned(seed: int, models: int = 40, nodes: int = 6) -> PoolFacts:
    """Return a fleet of which many models have left at random, with replicas, pairs and whole GPUs among the others."""
    random = Random(seed)
    groups = [_group(f"m{number:02}", random) for number in range(models)]
    facts = PoolFacts(POOL, tuple(gpu_node(f"n{at}", 8) for at in range(nodes)), tuple(groups), headroom=0)
    placed = {model for server in pack(facts).current for model in server.placed}
    left = {name for name in sorted(placed) if random.random() < 0.6}
    stay = tuple(group for group in groups if group.name in left)
    servers = (
        replace(server, placed={model: gpus for model, gpus in server.placed.items() if model in left})
        for server in pack(facts).current
    )
    return replace(facts, groups=stay, current=tuple(server for server in servers if server.placed))


def _group(name: str, random: Random) -> Group:
    kind = random.random()
    if kind < 0.1:
        return exclusive(name)
    return shared(name, random.randint(2, 40), 50 * random.randint(0, 6), replicas=2 if kind < 0.3 else 1)


def after(facts: PoolFacts) -> PoolFacts:
    """Return the facts once the plan is carried out."""
    return replace(facts, current=pack(facts).current)
