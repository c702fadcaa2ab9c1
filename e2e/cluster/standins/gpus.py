"""GPUs that a node offers on paper: what NVIDIA's device plugin and GPU feature discovery would publish.

The scheduler places by them as by real ones; a container on such a node finds no device.
"""

from dataclasses import dataclass

from e2e.cluster.access import Access
from e2e.cluster.client import core

RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Gpus:
    """`count` equal GPUs of a node, by default H100s. `memory_mib`: of each, MiB. `compute`: capability."""

    count: int = 8
    product: str = "NVIDIA-H100-80GB-HBM3"
    memory_mib: int = 81_559
    compute: tuple[int, int] = (9, 0)

    def labels(self) -> dict[str, str]:
        """Return the node's labels, as GPU feature discovery names them."""
        return {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": self.product,
            "nvidia.com/gpu.memory": str(self.memory_mib),
            "nvidia.com/gpu.count": str(self.count),
            "nvidia.com/gpu.compute.major": str(self.compute[0]),
            "nvidia.com/gpu.compute.minor": str(self.compute[1]),
        }

    def resources(self) -> dict[str, str]:
        """Return the resources that the node's status adds to its capacity."""
        return {RESOURCE: str(self.count)}


def offer_gpus(access: Access, node: str, gpus: Gpus) -> None:
    """Let `node` offer these GPUs, instead of those it offered. A kubelet keeps them until it is started again."""
    api = core(access)
    api.patch_node(node, {"metadata": {"labels": gpus.labels()}})
    api.patch_node_status(node, {"status": {"capacity": gpus.resources(), "allocatable": gpus.resources()}})
