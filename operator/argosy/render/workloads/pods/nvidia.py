"""What NVIDIA's server needs in its Pod for language models: its flags and its variables.

Never run: no Pod of NVIDIA's image has been started with these.
"""

from typing import Any

from argosy.api.servingpool import RuntimeName, ServingPool
from argosy.planning.plan import ServerPlan
from argosy.render.workloads.pods.inputs import Images

TENSORRT_LLM = "tensorrtllm"
ORCHESTRATOR = {"name": "TRTLLM_ORCHESTRATOR", "value": "1"}
"""Lets the server start the processes of an engine that is split over GPUs itself. Without it only `mpirun` could."""


def is_orchestrator(pool: ServingPool, plan: ServerPlan, images: Images) -> bool:
    """Return whether a server may have an engine of TensorRT-LLM that is split over its GPUs."""
    return pool.spec.runtime.name is RuntimeName.TRITON and len(plan.gpus) > 1 and TENSORRT_LLM in images.backends


def memory_pool_flags(pool: ServingPool, plan: ServerPlan, images: Images) -> list[str]:
    """Return the flags by which the server holds no memory of the GPUs itself, which its engine's processes have."""
    if not is_orchestrator(pool, plan, images):
        return []
    cuda = [f"--cuda-memory-pool-byte-size={gpu}:0" for gpu in range(len(plan.gpus))]
    return ["--pinned-memory-pool-byte-size=0", *cuda]


def variables(pool: ServingPool, plan: ServerPlan, images: Images) -> list[dict[str, Any]]:
    """Return the variables of the server's container."""
    return [dict(ORCHESTRATOR)] if is_orchestrator(pool, plan, images) else []
