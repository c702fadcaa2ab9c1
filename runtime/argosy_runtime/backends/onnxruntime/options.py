"""Session options and execution providers from a model's configuration."""

from collections.abc import Callable, Mapping
from functools import cache

import onnxruntime as ort
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.cpus import cpu_limit
from argosy_runtime.errors import invalid

Provider = tuple[str, dict[str, str]]

CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
CPU = "CPUExecutionProvider"
SHRINKAGE = "memory.enable_memory_arena_shrinkage"

_LEVELS = {
    -1: ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    1: ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    2: ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
_PRECISIONS = {"FP32": "", "FP16": "trt_fp16_enable", "BF16": "trt_bf16_enable", "INT8": "trt_int8_enable"}
_TENSORRT_NAMES = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}
_CUDNN_SEARCH = {"0": "EXHAUSTIVE", "1": "HEURISTIC", "2": "DEFAULT"}
_ARENA_STRATEGIES = {"0": "kNextPowerOfTwo", "1": "kSameAsRequested"}


def session_options(config: ModelConfig) -> ort.SessionOptions:
    """Return a session's threads, execution mode, graph optimization, memory and custom operators.

    Raises ServingError (INVALID_ARG).
    """
    options = ort.SessionOptions()
    parameters = Parameters(config)
    level = config.optimization.graph.level
    options.graph_optimization_level = _LEVELS.get(level, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
    options.execution_mode = _execution_mode(parameters)
    _size_thread_pools(options, parameters)
    options.enable_cpu_mem_arena = parameters.flag("enable_mem_arena", True)
    options.enable_mem_pattern = parameters.flag("enable_mem_pattern", True)
    for name, value in parameters.starting_with("session.").items():
        options.add_session_config_entry(name, value)
    for library in config.model_operations.op_library_filename:
        options.register_custom_ops_library(library)
    return options


def _size_thread_pools(settings: ort.SessionOptions, parameters: Parameters) -> None:
    """Give a session the threads that its configuration asks for, or a share in the process's pool.

    The library by itself counts the machine's processors, for each session. Without a limit that is left to it.
    The pool runs one node of a graph after the other; a session that runs several at once has threads of its own.
    """
    intra = max(parameters.integer("intra_op_thread_count", 0), 0)
    inter = max(parameters.integer("inter_op_thread_count", 0), 0)
    limit = cpu_limit()
    parallel = settings.execution_mode == ort.ExecutionMode.ORT_PARALLEL
    if limit is None or intra or inter or parallel:
        settings.intra_op_num_threads = intra or limit or 0
        settings.inter_op_num_threads = inter or limit or 0
    elif _has_pool(limit):
        settings.use_per_session_threads = False
    else:
        settings.intra_op_num_threads = settings.inter_op_num_threads = limit


@cache
def _has_pool(threads: int) -> bool:
    """Create the pool, once. Return False where the library's release has none, or a session was opened before."""
    try:
        ort.set_global_thread_pool_sizes(threads, 1)
    except Exception:
        return False
    return True


def run_options(config: ModelConfig) -> ort.RunOptions | None:
    """Return the options of every run, None where the defaults suffice."""
    shrinkage = Parameters(config).text(SHRINKAGE)
    if not shrinkage:
        return None
    options = ort.RunOptions()
    options.add_run_config_entry(SHRINKAGE, shrinkage)
    return options


def providers(config: ModelConfig, kind: str, device_id: int, stream: int | None = None) -> list[Provider]:
    """Return the execution providers in order of preference; the CPU is always last. `stream`: a CUDA stream's handle.

    Raises ServingError (INVALID_ARG).
    """
    accelerators = config.optimization.execution_accelerators
    chosen: list[Provider] = []
    if kind == "KIND_GPU":
        cuda: dict[str, str] = {}
        device = {"device_id": str(device_id)} | ({} if stream is None else {"user_compute_stream": str(stream)})
        for accelerator in accelerators.gpu_execution_accelerator:
            if accelerator.name == "tensorrt":
                chosen.append((TENSORRT, device | _tensorrt(accelerator.parameters)))
            elif accelerator.name == "cuda":
                cuda.update(accelerator.parameters)
            else:
                raise _unknown(accelerator.name)
        chosen.append((CUDA, {**_cuda(Parameters(config)), **cuda, **device}))
    for accelerator in accelerators.cpu_execution_accelerator:
        if accelerator.name != "openvino":
            raise _unknown(accelerator.name)
        chosen.append((OPENVINO, {"device_type": "CPU", **accelerator.parameters}))
    return [*chosen, (CPU, {})]


def _execution_mode(parameters: Parameters) -> ort.ExecutionMode:
    mode = parameters.integer("execution_mode", 0)
    if mode not in (0, 1):
        raise invalid(
            f"Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got {mode} ."
        )
    return ort.ExecutionMode.ORT_PARALLEL if mode else ort.ExecutionMode.ORT_SEQUENTIAL


def _unknown(name: str) -> Exception:
    return invalid(f"unknown Execution Accelerator '{name}' is requested")


def _tensorrt(parameters: Mapping[str, str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parameters.items():
        if name != "precision_mode":
            options[_TENSORRT_NAMES.get(name, name)] = value
        elif value not in _PRECISIONS:
            raise invalid(f"unsupported precision mode '{value}' is requested")
        elif _PRECISIONS[value]:
            options[_PRECISIONS[value]] = "1"
    return options


def _cuda(parameters: Parameters) -> dict[str, str]:
    """Return CUDA options from model parameters, where older configurations have them."""
    choices: dict[str, Callable[[str], str]] = {
        "cudnn_conv_algo_search": lambda value: _chosen("cudnn_conv_algo_search", value, _CUDNN_SEARCH),
        "arena_extend_strategy": lambda value: _chosen("arena_extend_strategy", value, _ARENA_STRATEGIES),
        "gpu_mem_limit": str,
        "do_copy_in_default_stream": str,
    }
    return {name: read(parameters.text(name)) for name, read in choices.items() if name in parameters}


def _chosen(name: str, value: str, choices: Mapping[str, str]) -> str:
    if value not in choices:
        raise invalid(f"unsupported {name} value '{value}' is requested")
    return choices[value]
