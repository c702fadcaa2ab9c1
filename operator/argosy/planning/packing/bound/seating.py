"""Seating of bound replicas: all of them enter a layout at once, because one by one each would copy the layout."""

from dataclasses import dataclass, field

from argosy.planning.facts import CurrentServer, Group
from argosy.planning.packing.capacity import FreeCapacity
from argosy.planning.packing.gpu_assignment import may_take
from argosy.planning.packing.layout import Assignment, Layout, PlacedReplica, Replica, Server
from argosy.planning.packing.layout.limits import allowed


@dataclass(slots=True)
class _Seats:
    """One server: the free capacity of its GPUs, and of those on its node that it may get. `gpus`: the ones in use;
    `size`: bytes of its documents that its models take.
    """

    server: Server
    free: dict[int, FreeCapacity]
    gpus: set[int] = field(default_factory=set)
    placed: list[PlacedReplica] = field(default_factory=list)
    size: int = 0


class Seating:
    """Fills `layout`; ask for it with `done`."""

    def __init__(self, layout: Layout) -> None:
        self._layout, self._seats = layout, dict[str, _Seats]()
        self._hosting = dict[str, list[str]]()
        self._left = {node: set(gpus) for node, gpus in layout.unallocated.items()}
        limit = layout.topology.facts.max_servers
        self._openings = None if limit is None else max(0, limit - len(layout.servers))

    def seat(self, replica: Replica, server: CurrentServer, assignment: Assignment) -> None:
        """Put a replica where it is, on GPUs that the server has, if that still fits."""
        if server.node not in self._left or not self._may_run(replica, server):
            return
        seats, taken = self._seats_of(server), {gpu for gpus in assignment for gpu in gpus}
        left = self._after(seats, replica, server, assignment, taken) if seats is not None else None
        if seats is None or left is None:
            return
        seats.free.update(left)
        seats.gpus |= taken
        self._left[server.node] -= taken
        seats.size += replica.group.size
        seats.placed.append(PlacedReplica(replica, assignment))
        if replica.group.name in self._layout.topology.limits:
            self._hosting_of(replica.group.name).append(server.node)
        self._open(server.name, seats)

    def done(self) -> Layout:
        """Return the layout with all of them."""
        return self._layout.with_servers(
            (seat.server, (*seat.server.placed, *seat.placed)) for seat in self._seats.values() if seat.placed
        )

    def _may_run(self, replica: Replica, server: CurrentServer) -> bool:
        """Return whether a node is one that the replica may run on, next to those of its group that are seated."""
        topology, group, node = self._layout.topology, replica.group, server.node
        limits = topology.limits_of(group)
        if limits and not allowed(limits, self._hosting_of(group.name), node):
            return False
        return group.runs_on(topology.nodes[node]) and not (group.separated and self._meets_others(group, server))

    def _meets_others(self, group: Group, server: CurrentServer) -> bool:
        """Return whether a server, or its node, has a group that another one is kept apart from."""
        here = [*(seats.server for seats in self._seats.values()), *self._layout.servers.values()]
        placed = {
            (one.name, replica.replica.group.name)
            for one in here
            if one.node == server.node
            for replica in (*one.placed, *(self._seats[one.name].placed if one.name in self._seats else ()))
        }
        on_server = {name for where, name in placed if where == server.name}
        return bool(on_server & group.not_on_server or {name for _, name in placed} & group.not_on_node)

    def _hosting_of(self, group: str) -> list[str]:
        """Return the nodes of a group's replicas, those that the layout had among them."""
        if group not in self._hosting:
            self._hosting[group] = self._layout.hosting(group)
        return self._hosting[group]

    def _seats_of(self, server: CurrentServer) -> _Seats | None:
        """Return the seats of a server; None where the pool may have no further server."""
        if server.name in self._seats:
            return self._seats[server.name]
        there = self._layout.servers.get(server.name)
        if there is None and self._openings == 0:
            return None
        seated = there or Server(server.name, server.node)
        topology, left = self._layout.topology, self._left[server.node]
        free = {gpu: topology.empty_gpu(server.node, gpu) for gpu in server.gpus if gpu in left}
        return _Seats(seated, {**seated.free, **free}, set(seated.gpus), size=seated.size)

    def _open(self, name: str, seats: _Seats) -> None:
        if name not in self._seats and name not in self._layout.servers and self._openings is not None:
            self._openings -= 1
        self._seats[name] = seats

    def _after(
        self, seats: _Seats, replica: Replica, server: CurrentServer, assignment: Assignment, taken: set[int]
    ) -> dict[int, FreeCapacity] | None:
        """Return the capacity that its GPUs have left with the replica; None where it does not fit there."""
        topology, limit = self._layout.topology, self._layout.topology.facts.max_gpus_per_server
        if seats.size + replica.group.size > topology.facts.staying_bytes:
            return None
        new = taken - seats.gpus
        if not taken.issubset(server.gpus) or not new <= self._left[server.node]:
            return None
        if limit is not None and new and len(seats.gpus) + len(new) > limit:
            return None
        free, node = {gpu: seats.free[gpu] for gpu in taken}, topology.nodes[server.node]
        for demand, gpus in zip(replica.group.demands, assignment, strict=True):
            if not may_take(node, demand.footprint, free, gpus):
                return None
            for gpu in gpus:
                free[gpu] = free[gpu].less(demand.footprint)
        return free
