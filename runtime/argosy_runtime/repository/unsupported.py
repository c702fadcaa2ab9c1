"""Settings without effect on this server. Those that a model depends on are refused, the others reported."""

from collections.abc import Callable

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import unsupported

_Set = Callable[[ModelConfig], bool]

_REFUSED: dict[str, _Set] = {
    "model_repository_agents are": lambda config: bool(config.model_repository_agents.agents),
    "response_cache is": lambda config: config.response_cache.enable,
}
_JOINS_BATCHES = ("onnxruntime", "pytorch", "libtorch", "tensorrt")
_WITHOUT_EFFECT: dict[str, _Set] = {
    "batch_input": lambda config: bool(config.batch_input) and config.backend not in _JOINS_BATCHES,
    "batch_output": lambda config: bool(config.batch_output) and config.backend not in _JOINS_BATCHES,
    "instance_group.rate_limiter": lambda config: any(g.HasField("rate_limiter") for g in config.instance_group),
    "instance_group.host_policy": lambda config: any(g.host_policy for g in config.instance_group),
    "model_metrics": lambda config: config.HasField("model_metrics"),
    "optimization.cuda.graphs": lambda config: (
        config.optimization.cuda.graphs and config.backend not in ("pytorch", "libtorch", "tensorrt")
    ),
    "optimization.cuda.busy_wait_events": lambda config: config.optimization.cuda.busy_wait_events,
    "optimization.cuda.output_copy_stream": lambda config: config.optimization.cuda.output_copy_stream,
    "optimization.gather_kernel_buffer_threshold": lambda config: (
        config.optimization.gather_kernel_buffer_threshold > 0
    ),
    "optimization.eager_batching": lambda config: config.optimization.eager_batching,
    "ensemble_scheduling.max_inflight_requests": lambda config: config.ensemble_scheduling.max_inflight_requests > 0,
}


def refuse(config: ModelConfig) -> None:
    """Raise ServingError (UNSUPPORTED) where a model would answer otherwise than its configuration says."""
    for setting, is_set in _REFUSED.items():
        if is_set(config):
            raise unsupported(f"model '{config.name}': {setting} not supported by this server yet")


def without_effect(config: ModelConfig) -> str:
    """Return the settings of a configuration without effect here, in words; "" where all have one."""
    settings = [setting for setting, is_set in _WITHOUT_EFFECT.items() if is_set(config)]
    if not settings:
        return ""
    return f"{', '.join(settings)} {'has' if len(settings) == 1 else 'have'} no effect on this server"
