"""Choices: sets of victims on one node whose places together may be enough for a replica."""

from collections.abc import Iterator, Sequence
from itertools import islice

from argosy.planning.facts import Footprint
from argosy.planning.packing.capacity import FreeCapacity, link_group
from argosy.planning.packing.eviction.victims import Placed, Victim, Victims
from argosy.planning.packing.gpu_assignment import hardness
from argosy.planning.packing.layout import Replica

_NODES = 32
"""Nodes that are looked at closely, those with the cheapest victims."""


def choices(placed: Placed, replica: Replica) -> Iterator[tuple[Victims, str]]:
    """Yield sets of victims with the node that they are on, the cheapest first; whether they are enough is not known.

    The last ones are all victims of a node, and where the pool may have no further server, those of servers that end.
    """
    winner, layout = placed.rank(replica.group), placed.layout
    by_node = placed.by_node(winner)
    sets: dict[tuple[str, frozenset[tuple[str, str]]], tuple[Victims, str]] = {}
    for node in _promising(placed, replica, by_node):
        for victims in _sets(placed, replica, node, by_node[node]):
            if placed.may_go(victims, winner):
                sets.setdefault((node, frozenset(victim.name for victim in victims)), (victims, node))
    if layout.full:
        for here in by_node.values():
            for victims in _by_server(here):
                if len(victims) == len(victims[0].server.placed) and placed.may_go(victims, winner):
                    sets.setdefault(("", frozenset(victim.name for victim in victims)), (victims, ""))
    yield from sorted(sets.values(), key=lambda item: (placed.price(item[0]), item[1]))


def _promising(placed: Placed, replica: Replica, by_node: dict[str, Victims]) -> list[str]:
    """Return the nodes that would have enough GPUs with enough memory, those with the cheapest victims first."""
    topology, need = placed.layout.topology, _hardest(replica)
    prices: list[tuple[tuple[object, ...], str]] = []
    for name, victims in by_node.items():
        node = topology.nodes[name]
        if not node.schedulable or not replica.group.runs_on(node):
            continue
        if topology.cpu_only or need.on_cpu:
            prices.append((placed.price(victims[:1]), name))
        elif (cheapest := next(_on_gpus(placed, need, name, victims), None)) is not None:
            prices.append((placed.price(cheapest or victims[:1]), name))
    return [name for _, name in islice(sorted(prices), _NODES)]


def _sets(placed: Placed, replica: Replica, node: str, victims: Victims) -> Iterator[Victims]:
    need = _hardest(replica)
    yield from ((victim,) for victim in victims)
    if not placed.layout.topology.cpu_only and not need.on_cpu:
        yield from (chosen for chosen in _on_gpus(placed, need, node, victims) if chosen)
    yield from _by_server(victims)
    yield _spared(placed, victims, replica)


def _spared(placed: Placed, victims: Victims, replica: Replica) -> Victims:
    """Return all victims of a node; of groups that keep a minimum only as many as they have beyond it."""
    chosen: list[Victim] = []
    winner = placed.rank(replica.group)
    for victim in sorted(victims, key=lambda victim: (placed.price([victim]), victim.name)):
        if placed.may_go([*chosen, victim], winner):
            chosen.append(victim)
    return tuple(chosen)


def _by_server(victims: Victims) -> Iterator[Victims]:
    for server in sorted({victim.server.name for victim in victims}):
        yield tuple(victim for victim in victims if victim.server.name == server)


def _on_gpus(placed: Placed, need: Footprint, node: str, victims: Victims) -> Iterator[Victims]:
    """Yield the victims of as many GPUs as a model needs, those of the cheapest GPUs of a domain together, the cheapest
    domain first.
    """
    topology = placed.layout.topology
    count = need.gpus or need.shares
    domains: dict[int, list[Victims]] = {}
    for gpu in sorted(topology.usable[node]):
        domain = link_group(topology.nodes[node], gpu) if need.gpus > 1 else 0
        on_gpu = [victim for victim in victims if any(gpu in gpus for gpus in victim.placed.assignment)]
        for chosen in _on_gpu(placed, need, node, gpu, on_gpu):
            domains.setdefault(domain, []).append(chosen)
            if count > 1:
                break
    matches: list[Victims] = []
    for sets in domains.values():
        sets.sort(key=placed.price)
        if count == 1:
            matches += sets
        elif len(sets) >= count:
            matches.append(tuple({victim.name: victim for chosen in sets[:count] for victim in chosen}.values()))
    yield from sorted(matches, key=placed.price)


def _on_gpu(placed: Placed, need: Footprint, node: str, gpu: int, victims: Sequence[Victim]) -> Iterator[Victims]:
    """Yield the victims of one GPU that leave enough of it: the fewest, and those of the lowest priorities."""
    for order in (_fewest, _lowest):
        chosen: list[Victim] = []
        left = _left(placed, node, gpu, chosen)
        for victim in sorted(victims, key=order):
            if _takes(left, need):
                break
            chosen.append(victim)
            left = _left(placed, node, gpu, chosen)
        if _takes(left, need):
            yield tuple(chosen)


def _fewest(victim: Victim) -> tuple[object, ...]:
    return -victim.memory, victim.group.priority, victim.name


def _lowest(victim: Victim) -> tuple[object, ...]:
    return victim.group.priority, -victim.memory, victim.name


def _takes(left: FreeCapacity, need: Footprint) -> bool:
    return left.empty and left.memory >= need.settled if need.exclusive else left.takes(need)


def _left(placed: Placed, node: str, gpu: int, without: Sequence[Victim]) -> FreeCapacity:
    """Return what is left on a GPU without these replicas."""
    gone = {victim.name for victim in without}
    left = placed.layout.topology.empty_gpu(node, gpu)
    for server in placed.servers[node]:
        for one in server.placed if gpu in server.gpus else ():
            if (one.replica.group.name, server.name) not in gone:
                for demand, gpus in zip(one.replica.group.demands, one.assignment, strict=True):
                    left = left.less(demand.footprint) if gpu in gpus else left
    return left


def _hardest(replica: Replica) -> Footprint:
    return min((demand.footprint for demand in replica.group.demands), key=hardness)
