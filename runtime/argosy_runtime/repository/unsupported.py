"""Settings without effect on this server. Those that a model depends on are refused, the others reported."""

from collections.abc import Callable, Collection
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import unsupported
from argosy_runtime.modelconfig.parameters.adapters import is_adapter
from argosy_runtime.modelconfig.parameters.variants import is_routed
from argosy_runtime.telemetry.triton_families import FIRST_RESPONSE

_Set = Callable[[ModelConfig], bool]

_REFUSED: dict[str, _Set] = {
    "response_cache of a model with variants, or of an adapter, is": lambda config: (
        config.response_cache.enable and (is_routed(config) or is_adapter(config))
    ),
}
_JOINS_BATCHES = ("onnxruntime", "pytorch", "libtorch", "tensorrt")
_OF_FIL_ON_GPUS = (
    "algo",
    "blocks_per_sm",
    "chunk_size",
    "layout",
    "storage_type",
    "threads_per_tree",
    "transfer_threshold",
    "use_experimental_optimizations",
)


def _is_set_for_fil(name: str) -> _Set:
    return lambda config: config.backend == "fil" and name in config.parameters


_WITHOUT_EFFECT: dict[str, _Set] = {
    **{f"parameters.{name}": _is_set_for_fil(name) for name in _OF_FIL_ON_GPUS},
    "batch_input": lambda config: bool(config.batch_input) and config.backend not in _JOINS_BATCHES,
    "batch_output": lambda config: bool(config.batch_output) and config.backend not in _JOINS_BATCHES,
    "model_metrics of families without buckets of their own": lambda config: any(
        control.metric_identifier.family != FIRST_RESPONSE for control in config.model_metrics.metric_control
    ),
    "optimization.cuda.graphs": lambda config: (
        config.optimization.cuda.graphs and config.backend not in ("pytorch", "libtorch", "tensorrt")
    ),
    "optimization.cuda.busy_wait_events": lambda config: config.optimization.cuda.busy_wait_events,
    "optimization.cuda.output_copy_stream": lambda config: config.optimization.cuda.output_copy_stream,
    "optimization.gather_kernel_buffer_threshold": lambda config: (
        config.optimization.gather_kernel_buffer_threshold > 0
    ),
    "optimization.eager_batching": lambda config: config.optimization.eager_batching,
}

RATE_LIMITER: Final = "instance_group.rate_limiter"
RESPONSE_CACHE: Final = "response_cache"
_BY_FLAG: dict[str, _Set] = {
    RATE_LIMITER: lambda config: any(g.HasField("rate_limiter") for g in config.instance_group),
    RESPONSE_CACHE: lambda config: config.response_cache.enable,
}
"""Settings that act once a flag of the server turns them on: `--rate-limit`, `--cache-config`."""


def refuse(config: ModelConfig) -> None:
    """Raise ServingError (UNSUPPORTED) where a model would answer otherwise than its configuration says."""
    for setting, is_set in _REFUSED.items():
        if is_set(config):
            raise unsupported(f"model '{config.name}': {setting} not supported by this server yet")


def without_effect(config: ModelConfig, off: Collection[str] = ()) -> str:
    """Return the settings of a configuration without effect here, in words; "" where all have one.

    `off`: parts of the server that flags turn on, and that are off.
    """
    needed = [setting for setting, is_set in _BY_FLAG.items() if setting in off and is_set(config)]
    settings = [setting for setting, is_set in _WITHOUT_EFFECT.items() if is_set(config)] + needed
    if not settings:
        return ""
    return f"{', '.join(settings)} {'has' if len(settings) == 1 else 'have'} no effect on this server"
