"""The memory of an engine: what its footprint allows on a GPU, and a small cache on the CPU."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import unavailable

GPU_MEMORY: Final = "GPU_MEMORY"
"""The parameter that says how many bytes of each GPU an instance may take, weights and cache together."""
CPU_CACHE_BYTES: Final = 2 << 30
"""KV cache on the CPU where nothing sets one. vLLM would take nine tenths of the machine's memory."""
_CPU_CACHE: Final = "VLLM_CPU_KVCACHE_SPACE"
_SET: Final = ("kv_cache_memory_bytes", "gpu_memory_utilization")


def memory_arguments(
    spec: InstanceSpec, arguments: Mapping[str, Any], environment: Mapping[str, str], total: Callable[[], int]
) -> dict[str, Any]:
    """Return the arguments about memory to add: none where the model has its own. `total`: bytes of the GPU.

    Raises ServingError: INVALID_ARG for a parameter that is no number, UNAVAILABLE for a GPU that is too small.
    """
    if any(arguments.get(name) is not None for name in _SET):
        return {}
    if spec.kind == "KIND_CPU":
        return {} if _CPU_CACHE in environment else {"kv_cache_memory_bytes": CPU_CACHE_BYTES}
    allowed = _allowed(spec.config)
    if allowed is None:
        return {}
    there = total()
    if allowed > there:
        raise unavailable(
            f"model instance '{spec.name}': {GPU_MEMORY} is {allowed} bytes, and its GPU has {there}: lower the "
            "model's footprint, or give it a larger GPU"
        )
    return {"gpu_memory_utilization": allowed / there}


def _allowed(config: ModelConfig) -> int | None:
    parameters = Parameters(config)
    return parameters.integer(GPU_MEMORY, 0, minimum=1) if GPU_MEMORY in parameters else None


def gpu_bytes() -> int:
    """Return the memory of the first GPU that this process sees, without making a context on it."""
    from vllm.platforms import current_platform

    return int(current_platform.get_device_total_memory(0))
