"""A running fleet as the search of packing sees it: servers that are fixed, and replicas that may leave them."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from argosy.planning.consolidation.free_gpus import FreeGpus, locations_of
from argosy.planning.facts import CurrentServer, Device, Group, Node, PoolFacts
from argosy.planning.packing.bound.replicas import BoundReplica, bound_replicas
from argosy.planning.packing.layout import Assignment, Layout, Replica, Server, Topology
from argosy.planning.packing.search.devices import devices_of
from argosy.planning.packing.search.items import Item, items_of
from argosy.planning.packing.search.state import State


@dataclass(slots=True)
class RunningFleet:
    """A pool's servers that run, with a `state` in which their replicas sit where they are, each an item.

    By server: its node in `hosts`, `gpus` with their numbers in the state, `items` with the numbers of what is there,
    and `on_cpu`, the replicas there that need no GPU. `nodes` and `groups` are by name. `owners`: the server of each
    GPU; `free`: the GPUs that none has. `fixed`: items that must not move; `held`: servers with a replica on the CPU
    that must not. `locations`: those of each GPU in which a slot can be, `counts` the free GPUs of each, and `rating`
    how good what is free is.
    """

    facts: PoolFacts
    state: State
    nodes: Mapping[str, Node]
    groups: Mapping[str, Group]
    hosts: dict[str, str]
    gpus: dict[str, tuple[int, ...]]
    items: dict[str, set[int]]
    on_cpu: dict[str, list[Replica]]
    owners: dict[int, str]
    free: set[int]
    fixed: set[int]
    held: set[str]
    locations: Mapping[int, Sequence[int]]
    counts: list[int]
    rating: FreeGpus

    @classmethod
    def of(
        cls, facts: PoolFacts, fixed_groups: Collection[str], recent: Collection[tuple[str, str]]
    ) -> "RunningFleet | None":
        """Return the fleet of a pool; None where a server or a replica is not as it can be planned with.

        `fixed_groups` must not move. `recent`: replicas that must not, by group and server: they came a short time ago.
        """
        facts = facts.with_peaks
        topology = Topology.of(facts)
        bound = bound_replicas(facts)
        able = all(_is_usable(topology, server) for server in facts.current) and all(one.complete for one in bound)
        if topology.cpu_only or not able:
            return None
        on_gpus = {one.replica.key: one for one in bound if not one.replica.group.on_cpu}
        devices = devices_of(_hollow(topology))
        numbers = {(devices.nodes[node], devices.index[at]): at for at, node in enumerate(devices.node)}
        state = State(devices, items_of(topology, [one.replica for one in on_gpus.values()]))
        gpus = {server.name: tuple(numbers[server.node, gpu] for gpu in server.gpus) for server in facts.current}
        items: dict[str, set[int]] = {server.name: set() for server in facts.current}
        on_cpu: dict[str, list[Replica]] = {server.name: [] for server in facts.current}
        for item in state.items:
            one = on_gpus[item.replica.key]
            state.put(item, _slots(item, one, numbers))
            items[one.server.name].add(item.number)
        held = set[str]()
        for one in bound:
            group, server = one.replica.group, one.server.name
            if group.on_cpu:
                on_cpu[server].append(one.replica)
                if _is_restricted(group) or group.name in fixed_groups or (group.name, server) in recent:
                    held.add(server)
        owners = {gpu: name for name, of_server in gpus.items() for gpu in of_server}
        fixed = {one.number for one in state.items if one.group in fixed_groups or one.replica.group.in_rollout}
        for name, there in items.items():
            fixed |= {number for number in there if (state.items[number].group, name) in recent}
        free = {gpu for gpu in range(len(devices.node)) if gpu not in owners}
        locations, every = dict[int, list[int]](), locations_of(devices)
        for number, location in enumerate(every):
            for gpu in location:
                locations.setdefault(gpu, []).append(number)
        counts = [sum(gpu in free for gpu in location) for location in every]
        rating = FreeGpus.of(counts, len(free))
        return cls(
            facts,
            state,
            topology.nodes,
            {group.name: group for group in facts.groups},
            {server.name: server.node for server in facts.current},
            gpus,
            items,
            on_cpu,
            owners,
            free,
            fixed,
            held,
            locations,
            counts,
            rating,
        )

    def bytes_of(self, item: Item) -> int:
        """Return the bytes that are loaded where an item goes: all of a GPU that it has for itself and declares no
        memory for.
        """
        full = self.state.devices.largest
        return sum((need.settled or (full if need.gpus else 0)) * max(1, need.gpus) for need in item.needs)

    def load(self, server: str) -> int:
        """Return the bytes of all that a server has on its GPUs."""
        return sum(self.bytes_of(self.state.items[number]) for number in self.items[server])

    def may_empty(self, server: str) -> bool:
        """Return whether a server has models on its GPUs, and all that it has may move."""
        here = self.items[server]
        return bool(here) and server not in self.held and self.fixed.isdisjoint(here)

    def free_gpus(self, more: Iterable[int] = (), fewer: Iterable[int] = ()) -> FreeGpus:
        """Return how good what is free would be, with `more` GPUs and without `fewer`."""
        changes, gpus = self._changes(more, fewer)
        return self.rating.changed(((self.counts[at], self.counts[at] + by) for at, by in changes.items()), gpus)

    def _changes(self, more: Iterable[int], fewer: Iterable[int]) -> tuple[Counter[int], int]:
        """Return by how many GPUs more are free in each location, and altogether."""
        changes, gpus = Counter[int](), 0
        for sign, some in ((1, more), (-1, fewer)):
            for gpu in some:
                gpus += sign
                for location in self.locations.get(gpu, ()):
                    changes[location] += sign
        return changes, gpus

    def _free(self, more: Iterable[int] = (), fewer: Iterable[int] = ()) -> None:
        """Record GPUs that are free, and others that are not."""
        came, went = set(more), set(fewer)
        self.rating = self.free_gpus(came, went)
        for location, by in self._changes(came, went)[0].items():
            self.counts[location] += by
        self.free = (self.free | came) - went

    def hosting(self, group: str) -> list[str]:
        """Return the node of each replica of a group that has several."""
        names = self.state.devices.nodes
        on_gpus = (names[at] for at in self.state.hosts.get(group, Counter[int]()).elements())
        on_cpu = (
            self.hosts[server]
            for server, replicas in self.on_cpu.items()
            for replica in replicas
            if replica.group.name == group
        )
        return [*on_gpus, *on_cpu]

    def add(self, number: int, server: str) -> None:
        """Record that an item, which the state has on its GPUs, is on a server, be it a new one."""
        gpus = {gpu for of_need in self.state.slots[number] for gpu in of_need}
        self.items.setdefault(server, set()).add(number)
        self.on_cpu.setdefault(server, [])
        self.gpus[server] = tuple(sorted({*self.gpus.get(server, ()), *gpus}))
        self.hosts[server] = self.state.devices.nodes[self.state.devices.node[self.gpus[server][0]]]
        self.owners.update(dict.fromkeys(gpus, server))
        self._free(fewer=self.free & gpus)

    def close(self, server: str) -> None:
        """Remove a server that has nothing. Its GPUs count as free, and nothing is placed on them in this fleet: they
        are indexed as those of a server.
        """
        gpus = self.gpus.pop(server)
        for gpu in gpus:
            self.state.sealed[gpu] = True
            del self.owners[gpu]
        self._free(more=gpus)
        del self.items[server], self.on_cpu[server], self.hosts[server]


def _is_restricted(group: Group) -> bool:
    """Return whether it depends on what else is placed where a group may be. No place on a CPU is searched for it."""
    return group.separated or any(spread.required for spread in group.spread)


def _is_usable(topology: Topology, server: CurrentServer) -> bool:
    """Return whether a server has its GPUs, and is to leave none of them: that comes first."""
    if not topology.leaving.get(server.node, frozenset[int]()).isdisjoint(server.gpus):
        return False
    return server.node in topology.nodes and set(server.gpus) <= topology.usable[server.node].keys()


def _hollow(topology: Topology) -> Layout:
    """Return a layout with the servers that run, and nothing on them."""
    running = topology.facts.current
    held: set[Device] = {(server.node, gpu) for server in running for gpu in server.gpus}
    return Layout(
        topology,
        {
            server.name: Server(
                server.name,
                server.node,
                server.gpus,
                free={gpu: topology.empty_gpu(server.node, gpu) for gpu in server.gpus},
            )
            for server in running
        },
        {
            node: tuple(gpu for gpu in sorted(usable) if (node, gpu) not in held)
            for node, usable in topology.usable.items()
        },
    )


def _slots(item: Item, bound: BoundReplica, numbers: dict[Device, int]) -> Assignment:
    """Return the GPUs of an item's needs, one each of those that a model shares."""
    slots: list[tuple[int, ...]] = []
    for at, need in zip(item.demands, item.needs, strict=True):
        gpus = [numbers[bound.server.node, gpu] for gpu in bound.gpus[item.replica.group.demands[at].model]]
        number = sum(at == before for before in item.demands[: len(slots)])
        slots.append(tuple(gpus) if need.gpus else (gpus[number],))
    return tuple(slots)
