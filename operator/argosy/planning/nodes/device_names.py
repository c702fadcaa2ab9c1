"""What the devices of a node are called."""

from collections import Counter
from collections.abc import Sequence

from argosy.planning.amounts import quantity
from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.slices import device_name, device_names, profile_of

_GPU = ("GPU", "")
"""The noun of a whole GPU, and no profile."""


def device_of(node: Node, index: int) -> str:
    """Return what a device of a node is called; a partition of a DRA driver with its profile."""
    return next((named(gpu) for gpu in node.gpus if gpu.index == index), device_name(index))


def named(gpu: Gpu) -> str:
    """Return what a device is called: `partition 1500000042 of 3g.40gb`, say."""
    profile = gpu.device.profile if gpu.device is not None else ""
    return f"{device_name(gpu.index)} of {profile}" if profile else device_name(gpu.index)


def devices_in_words(node: Node) -> str:
    """Return what a node has, as `4 x NVIDIA-H100` or `NVIDIA-H100: 2 GPUs, 7 slices of 1g.10gb`, without what is
    withheld; empty where its product is not known.
    """
    kinds = Counter(_kind(gpu) for gpu in node.gpus if not (gpu.is_cpu or gpu.withheld_by))
    if not node.product or not kinds:
        return ""
    if kinds.keys() == {_GPU}:
        return f"{kinds[_GPU]} x {node.product}"
    return f"{node.product}: {', '.join(_with_number(kinds[kind], *kind) for kind in sorted(kinds))}"


def _with_number(count: int, noun: str, profile: str) -> str:
    return quantity(count, noun) + (f" of {profile}" if profile else "")


def _kind(gpu: Gpu) -> tuple[str, str]:
    """Return the noun for a device, and the profile of a part of a GPU."""
    profile = gpu.device.profile if gpu.device is not None else profile_of(gpu.index)
    return ("partition" if gpu.device is not None else "slice", profile) if profile else _GPU


def devices_of(node: Node, indexes: Sequence[int]) -> str:
    """Return what devices of a node are called together, as `GPUs 0, 1`; nothing is `the CPU`."""
    by_name = {gpu.index for gpu in node.gpus if gpu.device is not None and gpu.device.profile}
    return ", ".join(device_of(node, index) for index in indexes) if by_name & {*indexes} else device_names(indexes)
