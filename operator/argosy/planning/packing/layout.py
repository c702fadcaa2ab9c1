"""A layout: the placements while a plan is being made. Immutable, so that a search can try and step back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from argosy.planning.facts import Demand, Footprint, Group, Node, PoolFacts, Rank, without_candidate, without_surge
from argosy.planning.nodes.slices import is_dra, is_slice
from argosy.planning.packing.capacity import (
    FreeCapacity,
    cpu_memory_of,
    gpus_of,
    is_cpu_only,
    roomiest,
    usable_memory,
)
from argosy.planning.packing.spreading import Limits, limits_by_group
from argosy.planning.requirements import label_keys
from argosy.planning.server_names import free_names
from argosy.planning.spreading import HOSTNAME

# One tuple of device indexes per demand of the group, in the group's order; () is the server's CPU.
Assignment = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Replica:
    """The `index`-th copy of a group."""

    group: Group
    index: int

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from every other replica."""
        return self.group.name, self.index

    @property
    def rank(self) -> Rank:
        """Its rank: those below the minimum first, and of both the higher priority first."""
        return self.group.rank(self.index)

    @property
    def without_candidate(self) -> "Replica":
        """The replica of the stable revision alone."""
        return Replica(self.group.with_footprints(without_candidate), self.index) if self.group.in_rollout else self

    @property
    def without_surge(self) -> "Replica":
        """The replica with memory for one of its revisions at a time."""
        return Replica(self.group.with_footprints(without_surge), self.index) if self.group.in_rollout else self


@dataclass(frozen=True, slots=True)
class PlacedReplica:
    """A replica that has a place."""

    replica: Replica
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class Server:
    """One runtime process of a layout: the devices it holds, and the replicas on it. `free` is by device index. `size`
    is what they take of its documents, `cpu_memory` what those of them take that found no GPU, and `cpu_surged` with
    the candidates of rollouts. `ordered`: one of them needs the first of its GPUs.
    """

    name: str
    node: str
    gpus: tuple[int, ...] = ()
    placed: tuple[PlacedReplica, ...] = ()
    free: Mapping[int, FreeCapacity] = field(default_factory=dict)
    memory: int = 0  # bytes left on its GPUs together
    compute: int = 0  # thousandths left on its GPUs together
    size: int = 0  # bytes
    cpu_memory: int = 0  # bytes
    cpu_surged: int = 0  # bytes
    ordered: bool = False
    most_memory: int = 0  # bytes left on the emptiest of its GPUs
    most_compute: int = 0  # thousandths left on the idlest of its GPUs

    def hosts(self, group: str) -> bool:
        """Return whether a replica of the group is already here."""
        return any(placed.replica.group.name == group for placed in self.placed)

    @property
    def seats(self) -> Iterator[tuple[Demand, tuple[int, ...]]]:
        """The models that are here, with their device indexes; none is the CPU."""
        for placed in self.placed:
            yield from zip(placed.replica.group.demands, placed.assignment, strict=True)

    def demands_on(self, node: str, gpu: int | None = None) -> list[Demand]:
        """Return the models that it has on a GPU of a node, or on the node's CPU."""
        here = self.seats if node == self.node else ()
        return [demand for demand, gpus in here if (gpu in gpus if gpu is not None else not gpus)]

    def has(self, replica: Replica) -> bool:
        """Return whether this replica is here, with any footprint."""
        return any(placed.replica.key == replica.key for placed in self.placed)


@dataclass(frozen=True, slots=True)
class Topology:
    """What does not change while a pool is packed, worked out once."""

    facts: PoolFacts
    nodes: Mapping[str, Node]
    usable: Mapping[str, Mapping[int, int]]  # node → device index → bytes
    total: Mapping[str, Mapping[int, int]]  # node → device index → bytes, with the headroom
    parts: Mapping[str, Mapping[int, int]]  # node → index of a slice → its thousandths of a GPU's compute
    cpu_memory: Mapping[str, int]  # node → bytes
    cpu_total: Mapping[str, int]  # node → bytes, with the headroom
    cpu_only: bool  # CPU slots serve what asks for a GPU
    running: Mapping[str, frozenset[int]]  # server that runs now → device indexes
    in_use: Mapping[str, frozenset[int]]  # node → device indexes of servers that run now, also of other pools
    kinds: Mapping[str, int]  # node → the same number as for every node that is like it
    leaving: Mapping[str, frozenset[int]]  # node → indexes of devices that are to be left; none of other nodes
    suspect: frozenset[str]  # nodes with a cordoned GPU, which a device plugin may hand out for another one
    limits: Mapping[str, Limits]  # group whose replicas have to be apart → replicas of each domain

    @classmethod
    def of(cls, facts: PoolFacts) -> "Topology":
        """Return the topology of one pool: its ready nodes, in the order of their names."""
        nodes = {node.name: node for node in sorted(facts.nodes, key=lambda node: node.name) if node.ready}
        usable = {node.name: _usable(node, facts.headroom) for node in nodes.values()}
        labels = _label_keys(facts)
        in_use = {name: frozenset(gpu.index for gpu in node.gpus if gpu.reclaimable) for name, node in nodes.items()}
        for server in facts.current:
            in_use[server.node] = in_use.get(server.node, frozenset()) | set(server.gpus)
        return cls(
            facts=facts,
            nodes=nodes,
            usable=usable,
            total={node.name: _usable(node, headroom=0) for node in nodes.values()},
            parts={node.name: _parts(node) for node in nodes.values()},
            cpu_memory={node.name: cpu_memory_of(node, facts.headroom) for node in nodes.values()},
            cpu_total={node.name: cpu_memory_of(node, headroom=0) for node in nodes.values()},
            cpu_only=is_cpu_only(facts),
            running={server.name: frozenset(server.gpus) for server in facts.current},
            in_use=in_use,
            kinds=_kinds(nodes.values(), in_use, labels),
            leaving={name: left for name, node in nodes.items() if (left := _leaving(node))},
            suspect=frozenset(node.name for node in nodes.values() if _is_suspect(node)),
            limits=limits_by_group(facts.groups, list(nodes.values()), usable, labels),
        )

    def limits_of(self, group: Group) -> Limits:
        """Return how many replicas each domain may have of a group; nothing where it is not spread."""
        return self.limits.get(group.name, ()) if group.spread_required else ()

    @property
    def taken(self) -> frozenset[str]:
        """The names that no new server gets."""
        return self.facts.taken | self.running.keys()

    def empty_gpu(self, node: str, index: int) -> FreeCapacity:
        """Return what is left on a GPU that nothing sits on. A slice never counts as empty: it is no whole GPU."""
        usable, total = self.usable[node][index], self.total[node][index]
        if not is_slice(index):
            return FreeCapacity.of(usable, total)
        return FreeCapacity.of(usable, total, self.parts[node][index], empty=False)


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

    def restricted(self, nodes: frozenset[str]) -> "Layout":
        """Return the layout of these nodes alone, as if the pool had no others."""
        facts = self.topology.facts
        some = replace(facts, nodes=tuple(node for node in facts.nodes if node.name in nodes))
        servers = {name: server for name, server in self.servers.items() if server.node in nodes}
        free = {node: gpus for node, gpus in self.unallocated.items() if node in nodes}
        return Layout(replace(Topology.of(some), cpu_only=self.topology.cpu_only), servers, free)

    def cpu_free(self, node: str) -> FreeCapacity:
        """Return what is left in the node's CPU slots, where they stand in for GPUs."""
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
            server.cpu_memory + sum(need.settled for replica in placed for need in _on_cpu(replica)),
            server.cpu_surged + sum(need.surged for replica in placed for need in _on_cpu(replica)),
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


def _usable(node: Node, headroom: int) -> dict[int, int]:
    """Return the bytes of each GPU that may be planned with."""
    return {gpu.index: usable_memory(gpu, headroom) for gpu in gpus_of(node) if not gpu.withheld_by}


def _leaving(node: Node) -> frozenset[int]:
    return frozenset(gpu.index for gpu in node.gpus if gpu.leaving and not gpu.withheld_by)


def _parts(node: Node) -> dict[int, int]:
    return {gpu.index: gpu.compute for gpu in node.gpus if is_slice(gpu.index)}


def _label_keys(facts: PoolFacts) -> tuple[str, ...]:
    """Return the labels by which a node may suit a group and not another one."""
    required = label_keys(demand.requires for group in facts.groups for demand in group.demands)
    spread = (group for group in facts.groups if group.replicas > 1 or group.spread_required)
    spreads = {one.key for group in spread for one in group.spread}
    return tuple(sorted(required | (spreads - {HOSTNAME})))


def _kinds(nodes: Iterable[Node], in_use: Mapping[str, frozenset[int]], labels: Sequence[str]) -> dict[str, int]:
    numbers: dict[object, int] = {}
    return {node.name: numbers.setdefault(_kind(node, in_use[node.name], labels), len(numbers)) for node in nodes}


def _kind(node: Node, in_use: frozenset[int], labels: Sequence[str]) -> object:
    """Return a value that is the same for interchangeable nodes.

    An index that follows from a device's name does not say what the device is like: its place among the node's devices
    stands for it.
    """
    number = {gpu.index: at if is_dra(gpu.index) else gpu.index for at, gpu in enumerate(node.gpus)}
    devices = tuple(
        (number[gpu.index], gpu.memory, gpu.compute, gpu.is_cpu) for gpu in node.gpus if not gpu.withheld_by
    )
    return (
        devices,
        _is_suspect(node),
        tuple(frozenset(number.get(index, index) for index in joined) for joined in node.nvlink),
        frozenset(number.get(index, index) for index in in_use),
        node.architecture(on_gpu=True),
        node.architecture(on_gpu=False),
        node.product,
        tuple(node.labels.get(key) for key in labels),
    )


def _is_suspect(node: Node) -> bool:
    return any(gpu.cordoned for gpu in node.gpus)


def _on_cpu(replica: PlacedReplica) -> list[Footprint]:
    """Return the footprints of a replica's models that have no GPU."""
    placed = zip(replica.replica.group.demands, replica.assignment, strict=True)
    return [demand.footprint for demand, gpus in placed if not gpus]
