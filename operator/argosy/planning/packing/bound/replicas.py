"""Stability: matches a group's replicas with the servers that run it now, so that they stay where they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from argosy.planning.facts import CurrentServer, Footprint, Group, Node, PoolFacts
from argosy.planning.packing.bound.candidates import with_candidates
from argosy.planning.packing.bound.seating import Seating
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.layout.limits import crowding
from argosy.planning.packing.scoring import Slot, slots_on


@dataclass(frozen=True, slots=True)
class BoundReplica:
    """A replica that runs already: its server, and the GPUs of those of its models that are there."""

    replica: Replica
    server: CurrentServer
    gpus: Mapping[str, tuple[int, ...]]

    @property
    def without_candidate(self) -> "BoundReplica":
        """The same of the stable revision alone."""
        return replace(self, replica=self.replica.without_candidate) if self.replica.group.in_rollout else self

    @property
    def anywhere(self) -> "BoundReplica":
        """The same, with nothing required of its node but engines: it stays where no other will do."""
        return replace(self, replica=Replica(self.replica.group.anywhere(), self.replica.index))

    @property
    def complete(self) -> bool:
        """Whether every model of the group is there."""
        return len(self.gpus) == len(self.replica.group.demands)

    @property
    def grown(self) -> bool:
        """Whether one of its models needs more than it was placed with."""
        needs = self.server.needs
        return any(
            demand.model in needs and needs[demand.model].is_less_than(demand.footprint)
            for demand in self.replica.group.demands
            if demand.model in self.gpus
        )

    def leaves(self, node: Node | None) -> bool:
        """Return whether it goes elsewhere if it can: its node is lost, or is not one that it may run on, or its server
        has a GPU that is to be left.
        """
        if node is None:
            return False
        left = any(gpu.leaving and gpu.index in self.server.gpus for gpu in node.gpus)
        return left or node.lost or not self.replica.group.runs_on(node)

    def holds(self, slot: Slot) -> bool:
        """Return whether `slot` leaves every model that is there where it is."""
        if slot.server != self.server.name:
            return False
        placed = zip(self.replica.group.demands, slot.assignment, strict=True)
        return all(self.gpus.get(demand.model, gpus) == gpus for demand, gpus in placed)


def bound_replicas(facts: PoolFacts) -> tuple[BoundReplica, ...]:
    """Return the replicas that run now: the complete ones first, of them those that need no more than before, so that
    what has grown moves and not its neighbours, and then the hardest to move.
    """
    hosts: dict[str, list[CurrentServer]] = {}
    for server in facts.current:
        for model in server.placed:
            hosts.setdefault(model, []).append(server)
    nodes = {node.name: node for node in facts.nodes}
    bound = [replica for group in facts.groups for replica in _bound_of_group(group, hosts, nodes)]
    return tuple(sorted(bound, key=_order))


def _order(bound: BoundReplica) -> tuple[object, ...]:
    return not bound.complete, bound.grown, weight(bound.replica.group), bound.replica.key


def weight(group: Group) -> tuple[tuple[int, int, int], str]:
    """Sort key of a group: the hardest to place first, then by name."""
    needs = [demand.footprint for demand in group.demands]
    gpus_needed = sum(need.gpus for need in needs)
    shared = [need for need in needs if not need.exclusive]
    return (-gpus_needed, -sum(need.memory for need in shared), -sum(need.compute for need in shared)), group.name


def bind(layout: Layout, bound: Sequence[BoundReplica]) -> Layout:
    """Return the layout with every bound replica that still fits; a group that has grown takes the rest of its models
    to its server. Candidates of rollouts get memory once all of them have their places.
    """
    stable = _bound(layout, [replica.without_candidate for replica in bound])
    return with_candidates(stable, [replica.replica for replica in bound])


def _bound(layout: Layout, bound: Sequence[BoundReplica]) -> Layout:
    seated = () if layout.topology.cpu_only else tuple(replica for replica in bound if replica.complete)
    if seated:
        seating = Seating(layout)
        for replica in seated:
            seating.seat(
                replica.replica, replica.server, tuple(replica.gpus[d.model] for d in replica.replica.group.demands)
            )
        layout = seating.done()
    for replica in bound if not seated else (replica for replica in bound if not replica.complete):
        slot = _stay(layout, replica)
        layout = slot.applied(layout, replica.replica) if slot else layout
    return layout


def _stay(layout: Layout, bound: BoundReplica) -> Slot | None:
    """Return the slot that leaves a bound replica's models where they are, or None if that is no longer possible.

    A server that would have to take another GPU for it is restarted, so what is there would not stay.
    """
    name, node = bound.server.name, bound.server.node
    server = layout.servers.get(name)
    if node not in layout.topology.nodes or (server is None and layout.full):
        return None
    every = slots_on(layout, bound.replica, name, node, server, bound.gpus, tries=16)
    staying = (slot for slot in every if bound.holds(slot) and _gpus(slot) <= set(bound.server.gpus))
    return min(staying, key=lambda slot: slot.cost, default=None)


def _gpus(slot: Slot) -> set[int]:
    return {gpu for gpus in slot.assignment for gpu in gpus}


def _bound_of_group(
    group: Group, hosts: Mapping[str, Sequence[CurrentServer]], nodes: Mapping[str, Node]
) -> list[BoundReplica]:
    servers = {server.name: server for demand in group.demands for server in hosts.get(demand.model, ())}
    seats = [(server, _gpus_on(server, group)) for server in servers.values()]
    there = [(server, gpus) for server, gpus in seats if gpus]
    chosen = enumerate(_retained(group, there, nodes) if len(there) > 1 else there[: group.replicas])
    return [BoundReplica(Replica(_as_placed(group, server), index), server, gpus) for index, (server, gpus) in chosen]


def _as_placed(group: Group, server: CurrentServer) -> Group:
    """Return the group with what its models were placed with, where nothing is known of their needs any more: what runs
    is moved by a measurement, and not by its absence.
    """
    noted = [demand.model for demand in group.demands if demand.footprint.assumed and demand.model in server.needs]
    if not noted:
        return group
    needs = {model: Footprint(server.needs[model].memory, server.needs[model].compute) for model in noted}
    demands = (replace(demand, footprint=needs.get(demand.model, demand.footprint)) for demand in group.demands)
    return replace(group, demands=tuple(demands))


_There = tuple[CurrentServer, dict[str, tuple[int, ...]]]


def _retained(group: Group, there: Sequence[_There], nodes: Mapping[str, Node]) -> list[_There]:
    """Return the servers that keep a replica, in the order in which they are: of more than there are to be, those with
    most of it, where it may run, and far from the others.
    """

    def order(pair: _There) -> tuple[object, ...]:
        return -_bytes(group, pair[1]), -len(pair[0].placed), pair[0].name

    def worse(pair: _There) -> tuple[bool, int]:
        node = nodes.get(pair[0].node)
        return node is not None and (node.lost or not group.runs_on(node)), -len(pair[1])

    left, chosen = sorted(there, key=lambda pair: (worse(pair), order(pair))), list[_There]()
    if len(left) <= group.replicas:
        return left
    while len(chosen) < group.replicas:
        others = [nodes[server.node] for server, _ in chosen if server.node in nodes]
        best = min(left, key=lambda pair: (worse(pair), _crowding(group, nodes.get(pair[0].node), others), order(pair)))
        left.remove(best)
        chosen.append(best)
    return chosen


def _crowding(group: Group, node: Node | None, others: Sequence[Node]) -> tuple[int, ...]:
    return crowding(group, node, others) if node is not None else ()


def _gpus_on(server: CurrentServer, group: Group) -> dict[str, tuple[int, ...]]:
    """Return the GPUs of the group's models on the server, of those whose number of GPUs is still the same."""
    return {
        demand.model: server.placed[demand.model]
        for demand in group.demands
        if demand.model in server.placed and _same_shape(demand.footprint, server.placed[demand.model])
    }


def _same_shape(need: Footprint, gpus: tuple[int, ...]) -> bool:
    if need.exclusive or need.shares > 1:
        return len(gpus) == (need.gpus or need.shares)
    return len(gpus) <= 1


def _bytes(group: Group, gpus: Mapping[str, tuple[int, ...]]) -> int:
    return sum(demand.footprint.memory for demand in group.demands if demand.model in gpus)
