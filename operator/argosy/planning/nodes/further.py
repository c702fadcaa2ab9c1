"""Further nodes: machines of a type that there is, on which nothing runs yet."""

from dataclasses import replace

from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.dra.partitions import offered
from argosy.planning.nodes.holders import is_of_type
from argosy.planning.spreading import HOSTNAME

_OWN_STATE = "node.kubernetes.io/"
"""The prefix of taints that Kubernetes sets by a node's own state, such as `unreachable`."""


def further_node(node: Node, name: str) -> Node:
    """Return another node of the same type, which is ready.

    Nothing has its devices, and none is cordoned or has a taint. GPUs that MIG divides are divided as on the original,
    so a profile that cannot be used there cannot be used here. Of what DRA drivers publish it offers what the
    original would offer if nothing had a device.
    """
    taints = tuple(taint for taint in node.taints if not str(taint.get("key", "")).startswith(_OWN_STATE))
    fresh = Node(
        name,
        tuple(_unused(gpu) for gpu in (*node.gpus, *node.excluded)),
        node.product,
        node.compute_capability,
        node.nvlink,
        {**node.labels, **({HOSTNAME: name} if HOSTNAME in node.labels else {})},
        taints,
        settings=node.settings,
        plugged=node.plugged,
        counters=node.counters,
    )
    return offered((fresh,), ())[0]


def _unused(gpu: Gpu) -> Gpu:
    """Return the device as it is before anything has it."""
    device = replace(gpu.device, taint="", evicts=False) if gpu.device is not None else None
    reason = gpu.withheld_by if is_of_type(gpu.withheld_by) else ""
    return Gpu(gpu.index, gpu.memory, is_cpu=gpu.is_cpu, withheld_by=reason, compute=gpu.compute, device=device)
