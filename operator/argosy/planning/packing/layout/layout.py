"""A layout: the placements while a plan is being made. Immutable, so that a search can try and step back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from argosy.planning.packing.capacity import FreeCapacity, roomiest
from argosy.planning.packing.layout.replicas import PlacedReplica, Replica
from argosy.planning.packing.layout.server import Server
from argosy.planning.packing.layout.topology import Topology
from argosy.planning.server_names import free_names


@dataclass(frozen=True)
class Layout:
    """Servers by name, and each node's GPUs that no server holds."""

    topology: Topology
    servers: Mapping[str, Server] = field(default_factory=dict)
    unallocated: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def empty(cls, topology: Topology) -> "Layout":
        """Return a layout with nothing placed."""
        return cls(topology, {}, {name: tuple(sorted(usable)) for name, usable in topology.usable.items()})

    @property
    def without_leaving(self) -> "Layout":
        """The same, in which nothing more gets a GPU that is to be left."""
        shut = {node: tuple(g for g in self.unallocated[node] if g not in gpus) for node, gpus in self._leaving()}
        return replace(self, unallocated={**self.unallocated, **shut}) if shut else self

    @property
    def with_leaving(self) -> "Layout":
        """The same, in which GPUs that are to be left may be had: by what has no other place."""
        held = {(server.node, gpu) for server in self.servers.values() for gpu in server.gpus}
        more = {
            node: tuple(sorted({*self.unallocated[node], *(g for g in gpus if (node, g) not in held)}))
            for node, gpus in self._leaving()
        }
        return replace(self, unallocated={**self.unallocated, **more}) if more else self

    def _leaving(self) -> Iterable[tuple[str, frozenset[int]]]:
        return self.topology.leaving.items()

    @property
    def gpus_used(self) -> int:
        """GPUs that servers hold."""
        return sum(len(server.gpus) for server in self.servers.values())

    @property
    def full(self) -> bool:
        """Whether the pool may have no further server."""
        limit = self.topology.facts.max_servers
        return limit is not None and len(self.servers) >= limit

    def nodes_with(self, group: str) -> frozenset[str]:
        """Return the nodes that serve a replica of a group."""
        return frozenset(self.hosting(group))

    def hosting(self, group: str) -> list[str]:
        """Return the node of each replica of a group."""
        return [server.node for server in self.hosts(group)]

    def hosts(self, group: str) -> Sequence[Server]:
        """Return the server of each replica of a group."""
        return self._hosts.get(group, ())

    @cached_property
    def _hosts(self) -> dict[str, list[Server]]:
        hosts: dict[str, list[Server]] = {}
        for server in self.servers.values():
            for placed in server.placed:
                hosts.setdefault(placed.replica.group.name, []).append(server)
        return hosts

    @cached_property
    def largest_size(self) -> int:
        """The bytes of the largest server's documents."""
        return max((server.size for server in self.servers.values()), default=0)

    @cached_property
    def roomiest(self) -> list[tuple[str, int, FreeCapacity]]:
        """The GPUs of which none has both more memory and more compute left, with their nodes."""
        return roomiest(self.left())

    def left(self) -> Iterator[tuple[str, int, FreeCapacity]]:
        """Yield what each GPU has left."""
        for server in self.servers.values():
            yield from ((server.node, gpu, left) for gpu, left in server.free.items())
        for node, gpus in self.unallocated.items():
            yield from ((node, gpu, self.topology.empty_gpu(node, gpu)) for gpu in gpus)

    def part(self, topology: Topology) -> "Layout":
        """Return the layout of the nodes of a part of its topology."""
        names = sorted(name for name, server in self.servers.items() if server.node in topology.nodes)
        servers = {name: self.servers[name] for name in names}
        return Layout(topology, servers, {name: self.unallocated[name] for name in topology.nodes})

    def cpu_free(self, node: str) -> FreeCapacity:
        """Return what is left in the node's CPU devices, where they stand in for GPUs."""
        here = [server for server in self.servers.values() if server.node == node]
        usable = self.topology.cpu_memory[node] - sum(server.cpu_memory for server in here)
        return FreeCapacity.of(usable, self.topology.cpu_total[node] - sum(server.cpu_surged for server in here))

    def free_names(self) -> Iterator[str]:
        """Yield server names that neither this layout nor a running server has."""
        return free_names(self.topology.facts.pool.name, self.servers.keys() | self.topology.running.keys())

    def with_replica(self, server: str, node: str, replica: PlacedReplica) -> "Layout":
        """Return this layout with one more replica; the server is opened on `node` if it is new."""
        before = self.servers.get(server) or Server(server, node)
        return self._with_server(before, self._with(before, (replica,)))

    def with_servers(self, filled: Iterable[tuple[Server, tuple[PlacedReplica, ...]]]) -> "Layout":
        """Return this layout with replicas placed on servers, new ones or its own, which keep all that they had."""
        servers = dict(self.servers)
        left: dict[str, set[int]] = {}
        for before, placed in filled:
            after = servers[before.name] = self._with(Server(before.name, before.node), placed)
            left.setdefault(after.node, set(self.unallocated[after.node])).difference_update(after.gpus)
        free = {node: tuple(sorted(gpus)) for node, gpus in left.items()}
        return Layout(self.topology, servers, {**self.unallocated, **free})

    def without(self, replica: Replica, server: str) -> "Layout":
        """Return this layout without one replica of a server; GPUs and a server that are no longer
        needed go with it.
        """
        before = self.servers[server]
        left = tuple(t for t in before.placed if t.replica.key != replica.key)
        return self._with_server(before, self._with(Server(before.name, before.node), left))

    def with_footprint(self, server: str, replica: Replica) -> "Layout | None":
        """Return this layout with other footprints for a replica that a server has; None where they do not fit."""
        before = self.servers[server]
        own = next(placed for placed in before.placed if placed.replica.key == replica.key)
        changed = PlacedReplica(replica, own.assignment)
        after = self._with_server(
            before,
            self._with(
                Server(before.name, before.node), tuple(changed if one is own else one for one in before.placed)
            ),
        )
        alone = (
            self.topology.empty_gpu(before.node, gpu).takes(demand.footprint)
            for demand, gpus in zip(replica.group.demands, own.assignment, strict=True)
            for gpu in gpus
        )
        there = [
            *after.servers[server].free.values(),
            *([after.cpu_free(before.node)] if self.topology.cpu_only else []),
        ]
        return after if all(alone) and all(left.memory >= 0 for left in there) else None

    def _with(self, server: Server, placed: tuple[PlacedReplica, ...]) -> Server:
        """Return the server with these replicas in addition to its own."""
        free = dict(server.free)
        for replica in placed:
            for demand, gpus in zip(replica.replica.group.demands, replica.assignment, strict=True):
                for gpu in gpus:
                    left = free.get(gpu) or self.topology.empty_gpu(server.node, gpu)
                    free[gpu] = left.less(demand.footprint)
        memory = sum(capacity.memory for capacity in free.values())
        compute = sum(capacity.compute for capacity in free.values())
        return Server(
            server.name,
            server.node,
            tuple(sorted(free)),
            (*server.placed, *placed),
            free,
            memory,
            compute,
            server.size + sum(replica.replica.group.size for replica in placed),
            server.cpu_memory + sum(need.settled for replica in placed for need in replica.on_cpu),
            server.cpu_surged + sum(need.surged for replica in placed for need in replica.on_cpu),
            server.ordered or any(replica.replica.group.first_gpus for replica in placed),
            max((capacity.memory for capacity in free.values()), default=0),
            max((capacity.compute for capacity in free.values()), default=0),
        )

    def _with_server(self, before: Server, after: Server) -> "Layout":
        servers = dict(self.servers)
        servers[after.name] = after
        if not after.placed:
            del servers[after.name]
        left = (set(self.unallocated[after.node]) | set(before.gpus)) - set(after.gpus)
        return Layout(self.topology, servers, {**self.unallocated, after.node: tuple(sorted(left))})
