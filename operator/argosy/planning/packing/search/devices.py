"""The GPUs of a pool as numbers, with what servers that are not to change have of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from argosy.planning.nodes.slices import is_slice
from argosy.planning.packing.capacity import FreeCapacity
from argosy.planning.packing.layout import Layout, Server


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """A server that stays as it is. `gpus`: those in use; `reach`: those that it can take without a restart, None for
    any; `groups`: those that it hosts and that are apart from something; `ordered`: one of its models needs its first
    GPUs.
    """

    name: str
    gpus: frozenset[int]
    reach: frozenset[int] | None
    groups: frozenset[str]
    size: int
    ordered: bool


@dataclass(frozen=True, slots=True, eq=False)
class Devices:
    """All GPUs that may be planned with, numbered in the order of nodes and device indexes.

    `largest`: bytes of the largest, `largest_of`: of each node's. `domains`: GPUs that NVLink joins, of one node
    each; `domains_of`: those of a GPU. `owners`: the server that a GPU belongs to. `free`, `spare` (with the headroom)
    and `compute` are what is left next to the servers that stay. `labels`: of each node.
    `on_cpus`: groups that servers without GPUs have and that are kept apart from others, each with its node.
    """

    nodes: tuple[str, ...]
    kinds: tuple[int, ...]
    suspect: tuple[bool, ...]
    first: tuple[int, ...]
    node: tuple[int, ...]
    index: tuple[int, ...]
    sliced: tuple[bool, ...]
    memory: tuple[int, ...]
    largest: int
    largest_of: tuple[int, ...]
    busy: tuple[bool, ...]
    domains: tuple[tuple[int, ...], ...]
    domains_of: tuple[tuple[int, ...], ...]
    anchors: tuple[Anchor, ...]
    owners: tuple[Anchor | None, ...]
    free: tuple[int, ...]
    spare: tuple[int, ...]
    compute: tuple[int, ...]
    max_gpus: int | None
    max_bytes: int
    labels: tuple[Mapping[str, str], ...]
    on_cpus: tuple[tuple[str, int], ...]

    def of_node(self, node: int) -> range:
        """Return the GPUs of a node."""
        return range(self.first[node], self.first[node + 1])


def devices_of(layout: Layout) -> Devices:
    """Return the GPUs of a layout, whose servers stay as they are."""
    topology = layout.topology
    nodes = tuple(topology.nodes)
    open_to_all = {name: sorted(topology.usable[name].keys() - _shut(layout, name)) for name in nodes}
    every = [(at, name, gpu) for at, name in enumerate(nodes) for gpu in open_to_all[name]]
    numbers = {(name, gpu): number for number, (_, name, gpu) in enumerate(every)}
    counts = [len(gpus) for gpus in open_to_all.values()]
    anchors = tuple(_anchor(layout, server, numbers) for server in layout.servers.values() if server.gpus)
    left = _left(layout)
    capacity = [left.get((name, gpu)) or topology.empty_gpu(name, gpu) for _, name, gpu in every]
    domains = _domains(layout, numbers)
    memory = tuple(topology.usable[name][gpu] for _, name, gpu in every)
    return Devices(
        nodes=nodes,
        kinds=tuple(topology.kinds[name] for name in nodes),
        suspect=tuple(name in topology.suspect for name in nodes),
        first=(0, *accumulate(counts)),
        node=tuple(at for at, _, _ in every),
        index=tuple(gpu for _, _, gpu in every),
        sliced=tuple(is_slice(gpu) for _, _, gpu in every),
        memory=memory,
        largest=max(memory, default=0) or 1,
        largest_of=tuple(max(topology.usable[name].values(), default=1) for name in nodes),
        busy=tuple(gpu in topology.in_use.get(name, ()) for _, name, gpu in every),
        domains=domains,
        domains_of=_by_gpu(domains, len(every)),
        anchors=anchors,
        owners=_owners(anchors, len(every)),
        free=tuple(one.memory for one in capacity),
        spare=tuple(one.memory + one.headroom for one in capacity),
        compute=tuple(one.compute for one in capacity),
        max_gpus=topology.facts.max_gpus_per_server,
        max_bytes=topology.facts.placed_bytes,
        labels=tuple(node.labels for node in topology.nodes.values()),
        on_cpus=tuple(
            (placed.replica.group.name, nodes.index(server.node))
            for server in layout.servers.values()
            for placed in (() if server.gpus else server.placed)
            if placed.replica.group.separated
        ),
    )


def _shut(layout: Layout, node: str) -> frozenset[int]:
    """Return the GPUs of a node that are to be left, and that no server of the layout has."""
    leaving = layout.topology.leaving.get(node, frozenset[int]())
    held = {gpu for server in layout.servers.values() if leaving and server.node == node for gpu in server.gpus}
    return leaving - held


def _left(layout: Layout) -> dict[tuple[str, int], FreeCapacity]:
    return {(server.node, gpu): left for server in layout.servers.values() for gpu, left in server.free.items()}


def _anchor(layout: Layout, server: Server, numbers: dict[tuple[str, int], int]) -> Anchor:
    running = layout.topology.running.get(server.name)
    reach = None
    if running is not None:
        mine = {gpu for gpu in running if gpu in layout.unallocated[server.node]} | set(server.gpus)
        reach = frozenset(numbers[server.node, gpu] for gpu in mine)
    groups = (placed.replica.group for placed in server.placed)
    return Anchor(
        name=server.name,
        gpus=frozenset(numbers[server.node, gpu] for gpu in server.gpus),
        reach=reach,
        groups=frozenset(group.name for group in groups if group.replicas > 1 or group.separated),
        size=server.size,
        ordered=server.ordered,
    )


def _owners(anchors: Sequence[Anchor], count: int) -> tuple[Anchor | None, ...]:
    owners: list[Anchor | None] = [None] * count
    for anchor in anchors:
        for gpu in anchor.gpus | (anchor.reach or frozenset()):
            owners[gpu] = anchor
    return tuple(owners)


def _domains(layout: Layout, numbers: dict[tuple[str, int], int]) -> tuple[tuple[int, ...], ...]:
    joined = (
        tuple(sorted(numbers[name, gpu] for gpu in group if (name, gpu) in numbers))
        for name, node in layout.topology.nodes.items()
        for group in node.nvlink
    )
    return tuple(domain for domain in joined if len(domain) > 1)


def _by_gpu(domains: Sequence[Sequence[int]], count: int) -> tuple[tuple[int, ...], ...]:
    result: list[tuple[int, ...]] = [()] * count
    for number, domain in enumerate(domains):
        for gpu in domain:
            result[gpu] = (*result[gpu], number)
    return tuple(result)
