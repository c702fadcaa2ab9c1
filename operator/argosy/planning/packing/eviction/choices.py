"""Choices: sets of victims on one node whose places together may be enough for a replica."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from argosy.planning.facts import Footprint, Rank
from argosy.planning.packing.capacity import link_group
from argosy.planning.packing.eviction.gpu_victims import GpuVictims
from argosy.planning.packing.eviction.victims import Placed, Price, Victim, Victims
from argosy.planning.packing.gpu_assignment import hardness
from argosy.planning.packing.layout import Replica

_NODES = 32
"""Nodes of which further sets are looked at, those with the cheapest victims."""
_SETS = 4
"""Sets of victims for each node that leave enough of its GPUs."""
_Choice = tuple[Price, str, Victims]


@dataclass(frozen=True, slots=True)
class _Matches:
    """The victims of one node that leave enough for a model by arithmetic. `price`: that of the cheapest ones; None
    where none are enough.
    """

    price: Price | None
    sets: tuple[tuple[Price, Victims], ...] = ()


def choices(placed: Placed, replica: Replica) -> Iterator[tuple[Victims, str]]:
    """Yield sets of victims with the node that they are on, the cheapest first: those that leave enough of a GPU, and
    where the pool may have no further server, all of a server. After them come larger ones, up to all of a node, for
    what has other needs.
    """
    winner, need = placed.rank(replica.group), _hardest(replica)
    nodes = list(_nodes(placed, replica, winner))
    matches = {node: _matches(placed, need, node, winner) for node in nodes}
    likely: list[_Choice] = [(price, node, victims) for node in nodes for price, victims in matches[node].sets]
    likely += _ending(placed, winner) if placed.layout.full else ()
    promising = sorted((price, node) for node in nodes if (price := matches[node].price) is not None)
    seen = set[tuple[str, frozenset[tuple[str, str]]]]()
    for _, node, victims in (*sorted(likely, key=_order), *_further(placed, replica, promising)):
        key = node, frozenset(victim.name for victim in victims)
        if key not in seen:
            seen.add(key)
            yield victims, node


def _order(choice: _Choice) -> tuple[Price, str]:
    return choice[:2]


def _nodes(placed: Placed, replica: Replica, winner: Rank) -> Iterator[str]:
    nodes = placed.layout.topology.nodes
    for name in placed.nodes(winner):
        if nodes[name].schedulable and replica.group.runs_on(nodes[name]):
            yield name


def _further(placed: Placed, replica: Replica, promising: list[tuple[Price, str]]) -> Iterator[_Choice]:
    """Yield the victims of each server, and all of a node together, for what needs more than a GPU's memory."""
    winner = placed.rank(replica.group)
    sets = list[_Choice]()
    for _, node in islice(promising, _NODES):
        victims = placed.here(node, winner)
        for chosen in (*_by_server(victims), _spared(placed, victims, winner)):
            if placed.may_go(chosen, winner):
                sets.append((placed.price(chosen), node, chosen))
    yield from sorted(sets, key=_order)


def _ending(placed: Placed, winner: Rank) -> Iterator[_Choice]:
    """Yield all replicas of a server, for each that ends without those that may give way."""
    for node in placed.nodes(winner):
        for victims in _by_server(placed.here(node, winner)):
            if len(victims) == len(victims[0].server.placed) and placed.may_go(victims, winner):
                yield placed.price(victims), "", victims


def _matches(placed: Placed, need: Footprint, node: str, winner: Rank) -> _Matches:
    return placed.once(node, ("matches", winner, need), lambda: _new_matches(placed, need, node, winner))


def _new_matches(placed: Placed, need: Footprint, node: str, winner: Rank) -> _Matches:
    """Return the sets of victims of a node. Each alone is one where it has enough without any, for then something else
    than memory and compute keeps the model away.
    """
    victims = placed.here(node, winner)
    if placed.layout.topology.cpu_only or need.on_cpu:
        enough: list[Victims] = [()]
    else:
        enough = _on_gpus(placed, need, node, winner)
    priced = [(placed.price(chosen or victims[:1]), chosen) for chosen in enough]
    if not priced:
        return _Matches(None)
    sets = [(price, chosen) for price, chosen in priced if chosen and placed.may_go(chosen, winner)][:_SETS]
    if () in enough:
        singles = ((victim,) for victim in victims)
        sets += [(placed.price(single), single) for single in singles if placed.may_go(single, winner)]
    return _Matches(min(price for price, _ in priced), tuple(sets))


def _spared(placed: Placed, victims: Victims, winner: Rank) -> Victims:
    """Return all victims of a node; of groups that keep a minimum only as many as they have beyond it."""
    chosen: list[Victim] = []
    for victim in sorted(victims, key=lambda victim: (placed.price([victim]), victim.name)):
        if placed.may_go([*chosen, victim], winner):
            chosen.append(victim)
    return tuple(chosen)


def _by_server(victims: Victims) -> Iterator[Victims]:
    for server in sorted({victim.server.name for victim in victims}):
        yield tuple(victim for victim in victims if victim.server.name == server)


def _on_gpus(placed: Placed, need: Footprint, node: str, winner: Rank) -> list[Victims]:
    """Return the victims of as many GPUs as a model needs, those of the cheapest GPUs of a domain together, the
    cheapest domain first.
    """
    count = need.gpus or need.shares
    domains: dict[int, list[Victims]] = {}
    for gpu in _gpu_victims(placed, node, winner):
        domain = link_group(placed.layout.topology.nodes[node], gpu.gpu) if need.gpus > 1 else 0
        sets = gpu.enough(need) if count == 1 else islice(gpu.enough(need), 1)
        domains.setdefault(domain, []).extend(sets)
    matches: list[Victims] = []
    for candidates in domains.values():
        candidates.sort(key=placed.price)
        if count == 1:
            matches += candidates
        elif len(candidates) >= count:
            matches.append(tuple({victim.name: victim for chosen in candidates[:count] for victim in chosen}.values()))
    return sorted(matches, key=placed.price)


def _gpu_victims(placed: Placed, node: str, winner: Rank) -> list[GpuVictims]:
    victims, gpus = placed.here(node, winner), sorted(placed.layout.topology.usable[node])
    return placed.once(node, ("gpus", winner), lambda: [GpuVictims.of(placed, node, gpu, victims) for gpu in gpus])


def _hardest(replica: Replica) -> Footprint:
    return min((demand.footprint for demand in replica.group.demands), key=hardness)
