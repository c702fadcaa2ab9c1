"""A layout: who sits where while a plan is being made. Immutable, so that a search can try and step back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.fleet.facts import Group, Node, PoolFacts
from argosy.fleet.packing.capacity import FULL_COMPUTE, Room, cpu_memory_of, cpus_stand_in, gpus_of, usable_memory

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


@dataclass(frozen=True, slots=True)
class Tenant:
    """A replica that has a place."""

    replica: Replica
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class Server:
    """One runtime process of a layout: the devices it holds, and its tenants."""

    name: str
    node: str
    gpus: tuple[int, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    rooms: Mapping[int, Room] = field(default_factory=dict)
    memory: int = 0  # bytes left on its GPUs together
    compute: int = 0  # thousandths left on its GPUs together

    def hosts(self, group: str) -> bool:
        """Whether a replica of the group is already here."""
        return any(tenant.replica.group.name == group for tenant in self.tenants)


@dataclass(frozen=True, slots=True)
class Terrain:
    """What does not change while a pool is packed, worked out once."""

    facts: PoolFacts
    nodes: Mapping[str, Node]
    usable: Mapping[str, Mapping[int, int]]  # node → device index → bytes
    cpu_memory: Mapping[str, int]  # node → bytes
    stand_in: bool  # CPU slots serve what asks for a GPU
    running: Mapping[str, frozenset[int]]  # server that runs now → device indexes
    held: Mapping[str, frozenset[int]]  # node → device indexes of the servers that run now
    kinds: Mapping[str, int]  # node → the same number as for every node that is like it

    @classmethod
    def of(cls, facts: PoolFacts) -> "Terrain":
        """The terrain of one pool: its ready nodes, in the order of their names."""
        nodes = {node.name: node for node in sorted(facts.nodes, key=lambda node: node.name) if node.ready}
        held: dict[str, frozenset[int]] = {}
        for server in facts.current:
            held[server.node] = held.get(server.node, frozenset()) | set(server.gpus)
        return cls(
            facts=facts,
            nodes=nodes,
            usable={n.name: {g.index: usable_memory(g, facts.headroom) for g in gpus_of(n)} for n in nodes.values()},
            cpu_memory={node.name: cpu_memory_of(node, facts.headroom) for node in nodes.values()},
            stand_in=cpus_stand_in(facts),
            running={server.name: frozenset(server.gpus) for server in facts.current},
            held=held,
            kinds=_kinds(nodes.values(), held),
        )

    @property
    def taken(self) -> frozenset[str]:
        """The names that no new server gets."""
        return self.facts.taken | self.running.keys()

    def empty_room(self, node: str, index: int) -> Room:
        """The room of a GPU that nothing sits on."""
        return Room(self.usable[node][index], FULL_COMPUTE)


@dataclass(frozen=True, slots=True)
class Layout:
    """Servers by name, and each node's GPUs that no server holds."""

    terrain: Terrain
    servers: Mapping[str, Server] = field(default_factory=dict)
    free: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def empty(cls, terrain: Terrain) -> "Layout":
        """Nothing placed."""
        return cls(terrain, {}, {name: tuple(sorted(usable)) for name, usable in terrain.usable.items()})

    @property
    def gpus_used(self) -> int:
        """GPUs that servers hold."""
        return sum(len(server.gpus) for server in self.servers.values())

    @property
    def full(self) -> bool:
        """Whether the pool may have no further server."""
        limit = self.terrain.facts.max_servers
        return limit is not None and len(self.servers) >= limit

    def nodes_with(self, group: str) -> frozenset[str]:
        """The nodes that already serve a replica of the group."""
        return frozenset(server.node for server in self.servers.values() if server.hosts(group))

    def cpu_free(self, node: str) -> int:
        """Bytes left in the node's CPU slots, where they stand in for GPUs."""
        taken = sum(cpu_bytes(t) for s in self.servers.values() if s.node == node for t in s.tenants)
        return self.terrain.cpu_memory[node] - taken

    def fresh_name(self) -> str:
        """A server name that neither this layout nor a running server has."""
        base = self.terrain.facts.pool.rpartition("/")[2]
        taken = self.servers.keys() | self.terrain.running.keys()
        return next(name for name in (f"{base}-{n}" for n in range(len(taken) + 1)) if name not in taken)

    def with_tenant(self, server: str, node: str, tenant: Tenant) -> "Layout":
        """This layout and one more replica; the server is opened on `node` if it is new."""
        before = self.servers.get(server) or Server(server, node)
        after = self._settled(before, (*before.tenants, tenant))
        return self._with_server(before, after)

    def without(self, replica: Replica) -> "Layout":
        """This layout less one replica; GPUs and a server that nobody needs any more go with it."""
        before = next(s for s in self.servers.values() if any(t.replica.key == replica.key for t in s.tenants))
        after = self._settled(before, tuple(t for t in before.tenants if t.replica.key != replica.key))
        return self._with_server(before, after)

    def _settled(self, server: Server, tenants: tuple[Tenant, ...]) -> Server:
        rooms: dict[int, Room] = {}
        for tenant in tenants:
            for demand, gpus in zip(tenant.replica.group.demands, tenant.assignment, strict=True):
                for gpu in gpus:
                    room = rooms.get(gpu) or self.terrain.empty_room(server.node, gpu)
                    rooms[gpu] = room.less(demand.footprint)
        memory = sum(room.memory for room in rooms.values())
        compute = sum(room.compute for room in rooms.values())
        return Server(server.name, server.node, tuple(sorted(rooms)), tenants, rooms, memory, compute)

    def _with_server(self, before: Server, after: Server) -> "Layout":
        servers = dict(self.servers)
        servers[after.name] = after
        if not after.tenants:
            del servers[after.name]
        free = (set(self.free[after.node]) | set(before.gpus)) - set(after.gpus)
        return Layout(self.terrain, servers, {**self.free, after.node: tuple(sorted(free))})


def _kinds(nodes: Iterable[Node], held: Mapping[str, frozenset[int]]) -> dict[str, int]:
    numbers: dict[object, int] = {}
    return {n.name: numbers.setdefault((n.gpus, n.nvlink, held.get(n.name)), len(numbers)) for n in nodes}


def cpu_bytes(tenant: Tenant) -> int:
    """Bytes the replica takes of a CPU slot: those of its models that found no GPU."""
    placed = zip(tenant.replica.group.demands, tenant.assignment, strict=True)
    return sum(demand.footprint.memory for demand, gpus in placed if not gpus)
