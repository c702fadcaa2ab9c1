"""What the devices of a node are called."""

from collections.abc import Sequence

from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.slices import device_name, device_names


def device_of(node: Node, index: int) -> str:
    """Return what a device of a node is called; a partition of a DRA driver with its profile."""
    return next((named(gpu) for gpu in node.gpus if gpu.index == index), device_name(index))


def named(gpu: Gpu) -> str:
    """Return what a device is called: `partition 1500000042 of 3g.40gb`, say."""
    profile = gpu.device.profile if gpu.device is not None else ""
    return f"{device_name(gpu.index)} of {profile}" if profile else device_name(gpu.index)


def devices_of(node: Node, indexes: Sequence[int]) -> str:
    """Return what devices of a node are called together, as `GPUs 0, 1`; nothing is `the CPU`."""
    by_name = {gpu.index for gpu in node.gpus if gpu.device is not None and gpu.device.profile}
    return ", ".join(device_of(node, index) for index in indexes) if by_name & {*indexes} else device_names(indexes)
