"""Stability: what is placed stays where it is. Matches a group's replicas with the servers that run it now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from argosy.fleet.facts import CurrentServer, Group, PoolFacts
from argosy.fleet.packing.layout import Layout, Replica
from argosy.fleet.packing.scoring import Candidate, seatings


@dataclass(frozen=True, slots=True)
class Pin:
    """A replica that runs already: its server, and the seats of those of its models that are there."""

    replica: Replica
    server: CurrentServer
    seats: Mapping[str, tuple[int, ...]]

    @property
    def complete(self) -> bool:
        """Whether every model of the group has its seat."""
        return len(self.seats) == len(self.replica.group.demands)

    def holds(self, candidate: Candidate) -> bool:
        """Whether `candidate` leaves every seated model where it is."""
        if candidate.server != self.server.name:
            return False
        placed = zip(self.replica.group.demands, candidate.assignment, strict=True)
        return all(self.seats.get(demand.model, gpus) == gpus for demand, gpus in placed)


def pins_of(facts: PoolFacts) -> tuple[Pin, ...]:
    """A pin for each replica that runs now, the complete ones first, then the hardest to move."""
    hosts: dict[str, list[CurrentServer]] = {}
    for server in facts.current:
        for model in server.placed:
            hosts.setdefault(model, []).append(server)
    pins = [pin for group in facts.groups for pin in _pins_of_group(group, hosts)]
    return tuple(sorted(pins, key=lambda pin: (not pin.complete, weight(pin.replica.group), pin.replica.key)))


def weight(group: Group) -> tuple[tuple[int, int, int], str]:
    """Sort key of a group: the hardest to place first, then by name."""
    needs = [demand.footprint for demand in group.demands]
    whole = sum(need.gpus for need in needs)
    shared = [need for need in needs if not need.whole]
    return (-whole, -sum(need.memory for need in shared), -sum(need.compute for need in shared)), group.name


def pinned(layout: Layout, pins: Sequence[Pin]) -> Layout:
    """The layout with every pin that still fits; a group that has grown takes the rest of its models to its
    server.
    """
    for pin in pins:
        candidate = stay(layout, pin)
        layout = candidate.applied(layout, pin.replica) if candidate else layout
    return layout


def stay(layout: Layout, pin: Pin) -> Candidate | None:
    """The place that leaves the pin's models where they are, or None if that is no longer possible.

    A server that would have to take another GPU for it is restarted, so what is there would not stay.
    """
    name, node = pin.server.name, pin.server.node
    server = layout.servers.get(name)
    if node not in layout.terrain.nodes or (server is None and layout.full):
        return None
    found = seatings(layout, pin.replica, name, node, server, pin.seats, tries=16)
    staying = (c for c in found if pin.holds(c) and _gpus(c) <= set(pin.server.gpus))
    return min(staying, key=lambda candidate: candidate.cost, default=None)


def _gpus(candidate: Candidate) -> set[int]:
    return {gpu for gpus in candidate.assignment for gpu in gpus}


def _pins_of_group(group: Group, hosts: Mapping[str, Sequence[CurrentServer]]) -> list[Pin]:
    servers = {server.name: server for demand in group.demands for server in hosts.get(demand.model, ())}
    found = [(server, _seats(server, group)) for server in servers.values()]
    kept = sorted(
        ((server, seats) for server, seats in found if seats),
        key=lambda pair: (-len(pair[1]), -_bytes(group, pair[1]), -len(pair[0].placed), pair[0].name),
    )
    return [Pin(Replica(group, index), server, seats) for index, (server, seats) in enumerate(kept[: group.replicas])]


def _seats(server: CurrentServer, group: Group) -> dict[str, tuple[int, ...]]:
    """Seats of the group's models on the server, of those whose number of GPUs is still the same."""
    return {
        demand.model: server.placed[demand.model]
        for demand in group.demands
        if demand.model in server.placed and _same_shape(demand.footprint.gpus, server.placed[demand.model])
    }


def _same_shape(whole: int, gpus: tuple[int, ...]) -> bool:
    return len(gpus) == whole if whole else len(gpus) <= 1


def _bytes(group: Group, seats: Mapping[str, tuple[int, ...]]) -> int:
    return sum(demand.footprint.memory for demand in group.demands if demand.model in seats)
