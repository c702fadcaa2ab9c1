"""Shared memory of a server's Pod, where its processes need more than the 64 MiB that a container gets."""

from typing import Any

from argosy.api.servingpool import RuntimeName, ServingPool
from argosy.planning.plan import ServerPlan
from argosy.render.workloads.pods.inputs import Images

SHARED_MEMORY = "shared-memory"
SHARED_MEMORY_PATH = "/dev/shm"
_OF_PROCESSES = frozenset({"vllm", "tensorrtllm"})
"""Backends whose engines are several processes, which exchange their batches in shared memory, on the CPU too."""


def shares_memory(pool: ServingPool, plan: ServerPlan, images: Images) -> bool:
    """Return whether a server's processes share memory.

    NVIDIA's server passes tensors to the processes of Python models (and of vLLM) through it. NCCL and MPI exchange
    data of GPUs in it.
    """
    return (
        pool.spec.runtime.name is RuntimeName.TRITON
        or len(plan.gpus) > 1
        or not _OF_PROCESSES.isdisjoint(images.backends)
    )


def shared_memory_volumes(pool: ServingPool, plan: ServerPlan, images: Images) -> list[dict[str, Any]]:
    """Return the volume for shared memory, which counts as memory of the Pod."""
    return [{"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory"}}] if shares_memory(pool, plan, images) else []


def shared_memory_mounts(pool: ServingPool, plan: ServerPlan, images: Images) -> list[dict[str, Any]]:
    """Return the mount of that volume in the server's container."""
    return [{"name": SHARED_MEMORY, "mountPath": SHARED_MEMORY_PATH}] if shares_memory(pool, plan, images) else []
