"""The capacity of a pool's devices: usable memory, and the free part of each GPU."""

from collections.abc import Iterable
from dataclasses import dataclass

from argosy.planning.facts import Device, Footprint, Gpu, Node, PoolFacts
from argosy.planning.nodes.slices import is_slice

FULL_COMPUTE = 1000


@dataclass(frozen=True, slots=True)
class FreeCapacity:
    """What is left on one GPU. `empty`: nothing sits on it, so a whole-GPU model may take it. `headroom`: what only a
    rollout's candidate may take in addition, since it is there for a while.
    """

    memory: int  # bytes
    compute: int  # thousandths
    empty: bool = True
    headroom: int = 0  # bytes

    @classmethod
    def of_gpu(cls, gpu: Gpu, headroom: int) -> "FreeCapacity":
        """Return what is left on a GPU that nothing sits on. A slice never counts as empty: it is no whole GPU."""
        return cls.of(gpu.usable(headroom), gpu.memory, gpu.compute, empty=not is_slice(gpu.index))

    @classmethod
    def of(cls, usable: int, total: int, compute: int = FULL_COMPUTE, empty: bool = True) -> "FreeCapacity":
        """Return what is left: of the `usable` bytes, and of the `total` with the headroom."""
        memory = min(usable, total)
        return cls(memory, compute, empty, total - memory)

    def takes(self, need: Footprint) -> bool:
        """Return whether a model fits here alongside the others, with its candidate."""
        both = need.surged <= self.memory + self.headroom
        return need.settled <= self.memory and both and need.compute <= self.compute

    def less(self, need: Footprint) -> "FreeCapacity":
        """Return the free capacity after placing `need`; a model that needs full GPUs leaves none."""
        if need.exclusive:
            return FreeCapacity(0, 0, empty=False)
        total = self.memory + self.headroom - need.surged
        return FreeCapacity.of(self.memory - need.settled, total, self.compute - need.compute, empty=False)


def capacity_left(
    nodes: Iterable[Node], headroom: int, taken: Iterable[tuple[Device, Footprint]]
) -> dict[Device, FreeCapacity]:
    """Return what each GPU of the nodes has left; `taken`: what is taken of each, and of others."""
    left = {(node.name, gpu.index): FreeCapacity.of_gpu(gpu, headroom) for node in nodes for gpu in gpus_of(node)}
    for device, need in taken:
        if device in left:
            left[device] = left[device].less(need)
    return left


def roomiest(left: Iterable[tuple[str, int, FreeCapacity]]) -> list[tuple[str, int, FreeCapacity]]:
    """Return the devices of which none has both more memory and more compute left; each with its node and index."""
    result: list[tuple[str, int, FreeCapacity]] = []
    for entry in sorted(left, key=lambda entry: (-entry[2].memory, -entry[2].compute, entry[:2])):
        if not result or entry[2].compute > result[-1][2].compute:
            result.append(entry)
    return result


def gpus_of(node: Node) -> tuple[Gpu, ...]:
    """Return the node's real GPUs, including withheld ones, without its CPU devices."""
    return tuple(gpu for gpu in node.gpus if not gpu.is_cpu)


def cpu_memory_of(node: Node, headroom: int) -> int:
    """Return the usable bytes of the node's CPU devices."""
    return sum(gpu.usable(headroom) for gpu in node.gpus if gpu.is_cpu)


def is_cpu_only(facts: PoolFacts) -> bool:
    """Return whether CPU devices serve models that request a GPU: only in a pool without GPUs, such as a laptop's.

    GPUs of a node that does not report them now count as GPUs.
    """
    if any(server.gpus for server in facts.current):
        return False
    return not any(gpus_of(node) for node in facts.nodes) and any(node.gpus for node in facts.nodes)


def link_group(node: Node, index: int) -> int:
    """Return the position of the NVLink group that holds the device, or -1 for a device that is joined to none."""
    return next((at for at, joined in enumerate(node.nvlink) if index in joined), -1)


def gpus_holding(needed: int, sizes: Iterable[int]) -> int:
    """Return how many GPUs of these sizes hold so many bytes together, the largest taken first, and at most all."""
    ordered = sorted(sizes, reverse=True)
    for count, size in enumerate(ordered):
        if needed <= 0:
            return count
        needed -= size
    return len(ordered)
