"""Parts of a pool: nodes on which few replicas are likely to find their best places, and how many GPUs they open."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from argosy.planning.facts import Footprint, Group
from argosy.planning.nodes.slices import is_slice
from argosy.planning.packing.capacity import FULL_COMPUTE
from argosy.planning.packing.layout import Replica
from argosy.planning.packing.nearby.spare import SpareNode
from argosy.planning.spreading import HOSTNAME

_JOINED = 12
"""Nodes with open GPUs that a group gets to choose from in each topology domain: the fullest ones that take it."""
_OPENED = 4
"""Nodes with empty GPUs that it gets to choose from, of each domain and size: those with the fewest."""


@dataclass(frozen=True, slots=True)
class Part:
    """The names of nodes that replicas may go to, and the `fewest` GPUs that they open in all of the pool."""

    nodes: frozenset[str]
    fewest: int


def part_of(todo: Sequence[Replica], spare: Sequence[SpareNode], hosting: Mapping[str, AbstractSet[str]]) -> Part:
    """Return the part for replicas. `hosting`: the nodes of other replicas, by group: they are among them."""
    groups = {replica.group.name: replica.group for replica in todo}
    names, closed = set[str](), set[str]()
    for name, group in groups.items():
        hosts = hosting.get(name, frozenset[str]())
        able = [(here, here.waste(_shared(group))) for here in spare if group.runs_on(here.node)]
        joined = [(here, waste) for here, waste in able if waste is not None]
        names |= hosts | _joined(group, joined, hosts) | _opened(group, [here for here, _ in able], hosts)
        if not joined:
            closed.add(name)
    largest = max((gpu.usable for here in spare for gpu in here.empty.values()), default=1)
    return Part(frozenset(names), _fewest(todo, closed, largest))


def _shared(group: Group) -> list[Footprint]:
    needs = (demand.footprint for demand in group.demands)
    return [need for need in needs if not need.exclusive and not need.on_cpu]


def _joined(group: Group, able: Sequence[tuple[SpareNode, int]], hosts: AbstractSet[str]) -> set[str]:
    """Return the nodes whose open GPUs take a replica and are full then, those without another replica first."""
    by_domain: dict[object, list[tuple[bool, int, str]]] = {}
    for here, waste in able:
        entry = here.node.name in hosts, waste, here.node.name
        by_domain.setdefault(_domains(group, here), []).append(entry)
    return {name for entries in by_domain.values() for _, _, name in sorted(entries)[:_JOINED]}


def _opened(group: Group, able: Sequence[SpareNode], hosts: AbstractSet[str]) -> set[str]:
    """Return the nodes with few empty GPUs that are enough for a replica."""
    by_domain: dict[object, list[tuple[bool, bool, int, str]]] = {}
    for here in able:
        if _holds(group, here):
            suspect = any(gpu.cordoned for gpu in here.node.gpus)
            entry = here.node.name in hosts, suspect, len(here.empty), here.node.name
            by_domain.setdefault((_domains(group, here), max(gpu.usable for gpu in here.empty.values())), []).append(
                entry
            )
    return {name for entries in by_domain.values() for *_, name in sorted(entries)[:_OPENED]}


def _holds(group: Group, here: SpareNode) -> bool:
    """Return whether a node's empty GPUs could take each of a group's models."""
    return bool(here.empty) and all(_takes(here, demand.footprint) for demand in group.demands)


def _takes(here: SpareNode, need: Footprint) -> bool:
    able = {
        index
        for index, gpu in here.empty.items()
        if gpu.waste(need) is not None and not (need.exclusive and is_slice(index))
    }
    if need.gpus > 1:
        return any(len(able & joined) >= need.gpus for joined in here.node.nvlink)
    return len(able) >= (need.gpus or need.shares)


def _domains(group: Group, here: SpareNode) -> tuple[str, ...]:
    """Return the topology domains of a node by which a group's replicas are apart, but for the node itself."""
    return tuple(here.node.domain(spread.key) for spread in group.spread if spread.key != HOSTNAME)


def _fewest(todo: Sequence[Replica], closed: AbstractSet[str], largest: int) -> int:
    """Return GPUs that no placement of replicas next to what stays does without, of those that nothing sits on:
    whole GPUs, and what groups take of which one model fits on no open GPU (`closed`).
    """
    opening = [replica.group for replica in todo if replica.group.name in closed]
    lone = [needs[0] for group in opening if len(needs := _shared(group)) == 1 and needs[0].shares == 1]
    memory, compute = sum(need.settled for need in lone), sum(need.compute for need in lone)
    apart = max((opening.count(group) for group in opening), default=0)
    return _exclusive(todo) + max(-(-memory // max(1, largest)), -(-compute // FULL_COMPUTE), apart)


def _exclusive(todo: Sequence[Replica]) -> int:
    return sum(demand.footprint.gpus for replica in todo for demand in replica.group.demands)
