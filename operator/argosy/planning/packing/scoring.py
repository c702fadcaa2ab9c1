"""Scoring: the slots that a replica may get, best first, where each gets its place one by one.

The search compares full placements instead (`search/objective.py`). Both put GPUs before nodes apart, and nodes before
other labels.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from argosy.planning.facts import Group
from argosy.planning.packing.capacity import FULL_COMPUTE, FreeCapacity
from argosy.planning.packing.gpu_assignment import Site, assignments
from argosy.planning.packing.layout import Assignment, Layout, PlacedReplica, Replica, Server
from argosy.planning.packing.layout.limits import allowed, preferred_labels

_TRIES_PER_SITE = 16


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """Why one place is better than another: fields in falling order of weight, less is better."""

    restarts: bool  # a running server would have to take another GPU, and interrupt all that it serves
    new_gpus: int
    shares_node: bool  # another replica of the group is on the same node
    shared_domains: int  # labels, of those by which the group prefers to be apart, whose value another replica has
    suspect: bool  # takes a new GPU on a node that has a cordoned one
    displaces: bool  # takes a GPU of a server that runs, which has to leave first
    shape: bool  # opens a server for nothing, or grows one that another would spare
    stranded: int  # free GPUs left behind on the node
    leftover: int  # unused thousandths (memory and compute) on the GPUs it touches
    peak: int  # thousandths of the busiest GPU it touches
    node: str
    server: str
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class Slot:
    """A server for one replica, and its GPUs there."""

    server: str
    node: str
    assignment: Assignment
    cost: Cost

    def applied(self, layout: Layout, replica: Replica) -> Layout:
        """Return the layout with the replica here."""
        return layout.with_replica(self.server, self.node, PlacedReplica(replica, self.assignment))


def best(layout: Layout, replica: Replica, on: str | None = None) -> Slot | None:
    """Return the best place, or None if the replica fits nowhere in this layout, or on the node `on` where that is
    given.
    """
    return min(slots(layout, replica, on=on), key=lambda slot: slot.cost, default=None)


def fits(layout: Layout, replica: Replica) -> bool:
    """Return whether the replica fits anywhere in this layout."""
    return next(slots(layout, replica), None) is not None


def slots(layout: Layout, replica: Replica, tries: int = _TRIES_PER_SITE, on: str | None = None) -> Iterator[Slot]:
    """Yield every site that can take the replica, in at most `tries` ways each; `on` one node alone where that is
    given.
    """
    nodes = layout.nodes_with(replica.group.name) if replica.group.replicas > 1 else frozenset()
    shared = _shared_domains(layout, replica, nodes)
    for name, node, server in _sites(layout, replica, on):
        near = sum(layout.topology.nodes[node].domain(key) in domains for key, domains in shared.items())
        yield from slots_on(layout, replica, name, node, server, {}, tries, (node in nodes, near))


def _shared_domains(layout: Layout, replica: Replica, hosting: Iterable[str]) -> dict[str, set[str]]:
    """Return the domains that other replicas are in, by the labels by which they prefer to be apart, but for nodes."""
    nodes = layout.topology.nodes
    keys = preferred_labels(replica.group) if hosting else []
    return {key: {nodes[name].domain(key) for name in hosting} for key in keys}


def slots_on(
    layout: Layout,
    replica: Replica,
    name: str,
    node: str,
    server: Server | None,
    preferred: Mapping[str, tuple[int, ...]],
    tries: int,
    near: tuple[bool, int] = (False, 0),
) -> Iterator[Slot]:
    """Yield the replica on one server (`None`: a new one called `name`), at most `tries` ways; none where it may not
    run on the node, or the server's documents would get too large. `near`: whether another replica is on the node, and
    the number of domains that it shares.
    """
    limits = layout.topology.limits_of(replica.group)
    if limits and not allowed(limits, layout.hosting(replica.group.name), node):
        return
    if replica.group.separated and _meets_others(layout, replica.group, node, server):
        return
    size = replica.group.size + (server.size if server else 0)
    if size > layout.topology.facts.staying_bytes or not replica.group.runs_on(layout.topology.nodes[node]):
        return
    site = _site(layout, name, node, server)
    ordered = replica.group.first_gpus or (server is not None and server.ordered)
    for assignment in islice(assignments(site, replica.group.demands, preferred), tries):
        if ordered and not _gives_first_gpus(server, PlacedReplica(replica, assignment)):
            continue
        yield Slot(name, node, assignment, _cost(layout, replica, site, name, server, assignment, near))


def _meets_others(layout: Layout, group: Group, node: str, server: Server | None) -> bool:
    """Return whether a server, or its node, has a group that another one is kept apart from."""
    if server is not None and any(server.hosts(name) for name in group.not_on_server):
        return True
    here = [other for other in layout.servers.values() if other.node == node] if group.not_on_node else []
    return any(other.hosts(name) for other in here for name in group.not_on_node)


def _gives_first_gpus(server: Server | None, added: PlacedReplica) -> bool:
    """Return whether every model that needs the first GPUs of its server has them, with a replica added to it."""
    placed = [*(server.placed if server is not None else ()), added]
    seats = [seat for replica in placed for seat in zip(replica.replica.group.demands, replica.assignment, strict=True)]
    every = sorted({gpu for _, gpus in seats for gpu in gpus})
    return all(set(gpus) == set(every[: len(gpus)]) for demand, gpus in seats if demand.footprint.first_gpus)


def _sites(layout: Layout, replica: Replica, on: str | None) -> Iterator[tuple[str, str, Server | None]]:
    nodes, several = layout.topology.nodes, replica.group.replicas > 1
    shared = [demand.footprint for demand in replica.group.demands if not demand.footprint.exclusive]
    memory, compute = sum(need.memory for need in shared), sum(need.compute for need in shared)
    most_memory, most_compute = max((n.settled for n in shared), default=0), max((n.compute for n in shared), default=0)
    on_cpus = layout.topology.cpu_only or replica.group.on_cpu
    most = layout.topology.facts.placed_bytes - replica.group.size
    for server in layout.servers.values():
        if (on is not None and server.node != on) or server.size > most:
            continue
        full = memory > server.memory or compute > server.compute
        full = full or most_memory > server.most_memory or most_compute > server.most_compute
        if full and not on_cpus and not layout.unallocated[server.node]:
            continue
        if nodes[server.node].schedulable and not (several and server.hosts(replica.group.name)):
            yield server.name, server.node, server
    if layout.full or most < 0:
        return
    name = next(layout.free_names())
    busy = {server.node for server in layout.servers.values()}
    seen: set[int] = set()
    for node in nodes.values() if on is None else (nodes[on],):
        if not node.schedulable or (not on_cpus and not layout.unallocated[node.name]):
            continue
        kind = layout.topology.kinds[node.name]
        if node.name not in busy and kind in seen:
            continue  # as good as an idle node already offered
        if node.name not in busy:
            seen.add(kind)
        yield name, node.name, None


def _site(layout: Layout, name: str, node: str, server: Server | None) -> Site:
    topology = layout.topology
    unallocated = layout.unallocated[node]
    if not topology.nodes[node].schedulable:
        unallocated = tuple(gpu for gpu in unallocated if gpu in topology.running.get(name, ()))
    free: dict[int, FreeCapacity] = dict(server.free) if server else {}
    free.update({gpu: topology.empty_gpu(node, gpu) for gpu in unallocated})
    running = frozenset(server.gpus) if server else frozenset()
    limit = topology.facts.max_gpus_per_server
    growth = len(unallocated) if limit is None else max(0, limit - len(running))
    cpu = layout.cpu_free(node) if topology.cpu_only else None
    return Site(topology.nodes[node], free, running, growth, cpu, topology.in_use.get(node, frozenset()))


def _cost(
    layout: Layout,
    replica: Replica,
    site: Site,
    name: str,
    server: Server | None,
    assignment: Assignment,
    near: tuple[bool, int],
) -> Cost:
    touched = {gpu for gpus in assignment for gpu in gpus}
    new = touched - site.server_gpus
    limited = layout.topology.facts.max_servers is not None
    running = layout.topology.running.get(name)
    left = len(layout.unallocated[site.node.name]) - len(new)
    leftover, peak = _fit(layout, replica, site, assignment)
    return Cost(
        restarts=server is not None and running is not None and not new <= running,
        new_gpus=len(new),
        shares_node=near[0],
        shared_domains=near[1],
        suspect=bool(new) and site.node.name in layout.topology.suspect,
        displaces=bool((new - (running or frozenset())) & layout.topology.in_use.get(site.node.name, frozenset())),
        shape=server is None if limited or not new else server is not None,
        stranded=(-left if limited else left) if new or server is None else 0,
        leftover=leftover,
        peak=peak,
        node=site.node.name,
        server=name,
        assignment=assignment,
    )


def _fit(layout: Layout, replica: Replica, site: Site, assignment: Assignment) -> tuple[int, int]:
    """Return the unused thousandths, and the busiest, of the GPUs that the shared models touch."""
    free: dict[int, FreeCapacity] = {}
    for demand, gpus in zip(replica.group.demands, assignment, strict=True):
        if not demand.footprint.exclusive:
            for gpu in gpus:
                free[gpu] = free.get(gpu, site.free[gpu]).less(demand.footprint)
    usable = layout.topology.usable[site.node.name]
    unused = [(left.memory * FULL_COMPUTE // max(1, usable[gpu]), left.compute) for gpu, left in free.items()]
    return sum(m + c for m, c in unused), FULL_COMPUTE - min((min(pair) for pair in unused), default=FULL_COMPUTE)
