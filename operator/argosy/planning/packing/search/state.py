"""The state of a search: which item has which GPUs, with an index of free capacity and an undo log."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence

from argosy.planning.packing.capacity import FULL_COMPUTE
from argosy.planning.packing.layout import Assignment
from argosy.planning.packing.layout.limits import DomainLimit
from argosy.planning.packing.search.devices import Devices
from argosy.planning.packing.search.items import Item, Need
from argosy.planning.packing.search.shelves import Shelves


class State:
    """A placement that changes in place. `slots`: GPUs by the item's number, in the order of its needs.

    `open` has the GPUs that are shared, by free memory, and `node_free` what they have free by node. `used` GPUs,
    `shared_nodes` (replicas on a node that has one already), `shared_domains` (the same of labels by which they prefer
    to be apart) and `fullness` (the sum of squares, so that full and empty
    GPUs count more than half-full ones) rate it.
    `log`: None while nothing is to be undone.
    """

    def __init__(self, devices: Devices, items: Sequence[Item]) -> None:
        count = len(devices.node)
        self.devices, self.items = devices, items
        self.free, self.spare, self.compute = list(devices.free), list(devices.spare), list(devices.compute)
        self.on: list[tuple[int, ...]] = [()] * count
        self.sealed, self.ties, self.sizes = [False] * count, [0] * count, [0] * count
        self.slots: dict[int, Assignment] = {}
        self.hosts: dict[str, Counter[int]] = {}
        self.open: list[tuple[int, int]] = []
        self.log: list[tuple[bool, Item, Assignment]] | None = None
        self.anchored = [False] * count
        self.node_free, self._full = [0] * len(devices.nodes), [0] * count
        self.shared_nodes = self.shared_domains = self.fullness = 0
        self._domains: dict[tuple[str, str], Counter[str]] = {}
        self._counts: dict[tuple[str, str], Counter[str]] = {}
        self._nodes_by_label: dict[str, dict[str, list[int]]] = {}
        self.weights = _weights(devices, items)
        self._anchor()
        empty = [sum(not self.anchored[gpu] for gpu in devices.of_node(node)) for node in range(len(devices.nodes))]
        self.nodes = Shelves(devices.kinds, empty)
        kinds = [devices.kinds[devices.node[domain[0]]] for domain in devices.domains]
        self.domains = Shelves(kinds, [sum(not self.anchored[gpu] for gpu in one) for one in devices.domains])
        self.used = sum(self.anchored)

    def _anchor(self) -> None:
        for group, node in self.devices.on_cpus:
            self.hosts.setdefault(group, Counter())[node] += 1
        for anchor in self.devices.anchors:
            node = self.devices.node[min(anchor.gpus)]
            self.sizes[min(anchor.gpus)] += anchor.size
            for group in anchor.groups:
                self.hosts.setdefault(group, Counter())[node] += 1
            for gpu in anchor.gpus:
                self.anchored[gpu] = True
                self._list(gpu)

    def is_empty(self, gpu: int) -> bool:
        """Return whether nothing sits on a GPU."""
        return not self.on[gpu] and not self.anchored[gpu]

    def takes(self, gpu: int, need: Need) -> bool:
        """Return whether a GPU has what one more model needs of it."""
        settled, surged, compute, gpus = need
        enough = self.free[gpu] >= settled and self.spare[gpu] >= surged and self.compute[gpu] >= compute
        return enough and not self.sealed[gpu] and not (gpus and self.devices.sliced[gpu])

    def put(self, item: Item, slots: Assignment) -> None:
        """Place an item."""
        for need, gpus in zip(item.needs, slots, strict=True):
            for gpu in gpus:
                if not self.on[gpu] and not self.anchored[gpu]:
                    self._occupy(gpu, 1)
                elif not need.gpus:
                    self._unlist(gpu)
                self._take_capacity(gpu, need, 1)
                self.on[gpu] += (item.number,)
                self.ties[gpu] += item.ties
                if not need.gpus:
                    self._list(gpu)
        self.slots[item.number] = slots
        self._count(item, slots[0][0], 1)
        if self.log is not None:
            self.log.append((True, item, slots))

    def take(self, item: Item) -> None:
        """Take an item from its place."""
        slots = self.slots.pop(item.number)
        for need, gpus in zip(item.needs, slots, strict=True):
            for gpu in gpus:
                left = list(self.on[gpu])
                left.remove(item.number)
                if not need.gpus:
                    self._unlist(gpu)
                self._take_capacity(gpu, need, -1)
                self.on[gpu] = tuple(left)
                self.ties[gpu] -= item.ties
                if not left and not self.anchored[gpu]:
                    self._occupy(gpu, -1)
                elif not need.gpus:
                    self._list(gpu)
        self._count(item, slots[0][0], -1)
        if self.log is not None:
            self.log.append((False, item, slots))

    def undo(self) -> None:
        """Take back what the log has, and end it."""
        log, self.log = self.log or [], None
        for placed, item, slots in reversed(log):
            if placed:
                self.take(item)
            else:
                self.put(item, slots)

    def _occupy(self, gpu: int, sign: int) -> None:
        """Count a GPU as used, or as empty again."""
        self.used += sign
        self.nodes.add(self.devices.node[gpu], -sign)
        for domain in self.devices.domains_of[gpu]:
            self.domains.add(domain, -sign)

    def _take_capacity(self, gpu: int, need: Need, sign: int) -> None:
        """Take what a model needs from a GPU, or give it back."""
        if need.gpus:
            self.sealed[gpu] = sign > 0
            return
        self.free[gpu] -= sign * need.settled
        self.spare[gpu] -= sign * need.surged
        self.compute[gpu] -= sign * need.compute

    def _list(self, gpu: int) -> None:
        """Count a shared GPU in the index and the sums."""
        free = self.free[gpu]
        insort(self.open, (free, gpu))
        self.node_free[self.devices.node[gpu]] += free
        self._full[gpu] = full = self._fullness(gpu)
        self.fullness += full

    def _unlist(self, gpu: int) -> None:
        free = self.free[gpu]
        del self.open[bisect_left(self.open, (free, gpu))]
        self.node_free[self.devices.node[gpu]] -= free
        self.fullness -= self._full[gpu]

    def _count(self, item: Item, gpu: int, sign: int) -> None:
        """Count an item on its server and on its node."""
        self.sizes[gpu] += sign * item.size
        if item.apart or item.separated or item.limits:
            hosts = self.hosts.setdefault(item.group, Counter())
            node = self.devices.node[gpu]
            for limit in item.limits:
                self.counts(item.group, limit)[limit.domains.get(self.devices.nodes[node], "")] += sign
            for key in item.preferred:
                domains, domain = self._domains_of(item.group, key), self.devices.labels[node].get(key, "")
                self.shared_domains += sign * (domains[domain] - (sign < 0) > 0)
                domains[domain] += sign
            self.shared_nodes += sign * (hosts[node] - (sign < 0) > 0)
            hosts[node] += sign
            if not hosts[node]:
                del hosts[node]

    def counts(self, group: str, limit: DomainLimit) -> Counter[str]:
        """Return how many replicas of a group each domain of a limit has."""
        if (group, limit.key) not in self._counts:
            names, hosts = self.devices.nodes, self.hosts.get(group, Counter[int]())
            self._counts[group, limit.key] = limit.count(names[at] for at in hosts for _ in range(hosts[at]))
        return self._counts[group, limit.key]

    def near(self, item: Item) -> Iterator[frozenset[int]]:
        """Yield the nodes that share a domain with a replica of an item's group, for one label more each time; those of
        all labels first.
        """
        nodes: list[frozenset[int]] = []
        there: set[int] = set()
        for key in item.preferred:
            taken = {domain for domain, count in self._domains_of(item.group, key).items() if count}
            there.update(*(self._nodes_of(key)[domain] for domain in taken))
            nodes.append(frozenset(there))
        yield from reversed(nodes)

    def _nodes_of(self, key: str) -> dict[str, list[int]]:
        """Return the nodes by the value of a label."""
        if key not in self._nodes_by_label:
            nodes: dict[str, list[int]] = {}
            for node, labels in enumerate(self.devices.labels):
                nodes.setdefault(labels.get(key, ""), []).append(node)
            self._nodes_by_label[key] = nodes
        return self._nodes_by_label[key]

    def _domains_of(self, group: str, key: str) -> Counter[str]:
        """Return how many replicas of a group each value of a label has."""
        if (group, key) not in self._domains:
            counts = Counter[str]()
            for node, count in self.hosts.get(group, {}).items():
                counts[self.devices.labels[node].get(key, "")] += count
            self._domains[group, key] = counts
        return self._domains[group, key]

    def _fullness(self, gpu: int) -> int:
        of_memory, of_compute = self.weights
        memory = (self.devices.memory[gpu] - self.free[gpu]) * of_memory // max(1, self.devices.memory[gpu])
        part = memory + (FULL_COMPUTE - self.compute[gpu]) * of_compute // FULL_COMPUTE
        return part * part


def _weights(devices: Devices, items: Sequence[Item]) -> tuple[int, int]:
    """Return how much memory and compute count, in thousandths: by how scarce each is."""
    memory = sum(item.memory for item in items) * FULL_COMPUTE // devices.largest
    compute = sum(item.compute for item in items)
    part = memory * FULL_COMPUTE // (memory + compute) if memory + compute else FULL_COMPUTE
    return part, FULL_COMPUTE - part
