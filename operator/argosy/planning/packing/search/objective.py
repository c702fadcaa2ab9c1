"""The objective: everything placed by priority, then the fewest GPUs, then replicas on different nodes, then in
different zones, then full GPUs next to empty ones. With it the fewest GPUs that a search may hope for, next to the
servers that stay.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from argosy.planning.packing.capacity import FULL_COMPUTE, gpus_holding
from argosy.planning.packing.lower_bound import fewest_bins
from argosy.planning.packing.search.devices import Devices
from argosy.planning.packing.search.items import Item
from argosy.planning.packing.search.state import State

_NEAR = 200
"""The part of the bound that a plan may take in addition without a further search."""
Lack = tuple[tuple[bool, int, int, int], ...]
Rating = tuple[Lack, int, int, int, int]


def rating(state: State, missing: Iterable[Item]) -> Rating:
    """Return how bad a state is, to be compared with that of another state of the same items: less is better."""
    return lack(state, missing), state.used, state.shared_nodes, state.shared_domains, -state.fullness


def lack(state: State, missing: Iterable[Item]) -> Lack:
    """Return what has no place: by rank, the highest first, the groups without any replica, and the replicas."""
    replicas, down = Counter[tuple[bool, int]](), Counter[tuple[bool, int]]()
    seen = set[str]()
    for item in missing:
        beyond, opposite = item.rank
        rank = (not beyond, -opposite)
        replicas[rank] += 1
        if item.group not in seen and not state.hosts.get(item.group):
            seen.add(item.group)
            down[rank] += 1
    return tuple((*rank, down[rank], replicas[rank]) for rank in sorted(replicas, reverse=True))


@dataclass(frozen=True, slots=True)
class Bound:
    """GPUs that no placement of all items does without, including those of servers that stay."""

    gpus: int

    def is_near(self, used: int) -> bool:
        """Return whether so few GPUs are used that a search for fewer ends: the bound, with a two-hundredth of it."""
        return used <= self.gpus + self.gpus // _NEAR

    @classmethod
    def of(cls, devices: Devices, items: Sequence[Item]) -> "Bound":
        """Return the bound: whole GPUs, and the most that memory, compute, or replicas apart ask for. Next to servers
        that stay, memory and compute count by volume alone.
        """
        fixed = {gpu for anchor in devices.anchors for gpu in anchor.gpus}
        exclusive = sum(item.exclusive for item in items)
        shared = [item for item in items if item.memory or item.compute]
        replicas: dict[str, int] = {}
        for item in shared:
            replicas[item.group] = replicas.get(item.group, 0) + 1
        volume = max(_memory(devices, shared, fixed), _compute(devices, shared, fixed))
        beyond = 0 if fixed else max(_bins(devices, shared), *replicas.values(), 0)
        return cls(len(fixed) + exclusive + max(volume, beyond))


def _bins(devices: Devices, items: Sequence[Item]) -> int:
    """Return empty GPUs for what none of them has in parts, by memory and by compute."""
    needs = [need for item in items for need in item.needs if not need.gpus]
    memory = fewest_bins(Counter(need.settled for need in needs), devices.largest)
    return max(memory, fewest_bins(Counter(need.compute for need in needs), FULL_COMPUTE))


def _memory(devices: Devices, items: Sequence[Item], fixed: set[int]) -> int:
    """Return GPUs for the memory, the largest ones taken first."""
    left = sum(item.memory for item in items) - sum(devices.free[gpu] for gpu in fixed)
    return gpus_holding(left, (memory for gpu, memory in enumerate(devices.memory) if gpu not in fixed))


def _compute(devices: Devices, items: Sequence[Item], fixed: set[int]) -> int:
    left = sum(item.compute for item in items) - sum(devices.compute[gpu] for gpu in fixed)
    return max(0, -(-left // FULL_COMPUTE))
