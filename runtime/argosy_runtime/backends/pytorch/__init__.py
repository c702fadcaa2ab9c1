"""The PyTorch backend: TorchScript, exported programs, AOTInductor packages, and a module's own Python source.

What may live here: detecting which of the four a version has, opening it, naming its inputs and outputs, and running
it.

    model.pt     TorchScript. Inputs are `<name>__<index>`, or the names of forward's arguments, or in the order
                 configured; a forward of one dictionary takes them by name.
    model.pt2    `torch.export.save` or an AOTInductor package. Inputs are `INPUT__<index>`, `ARGS[0][key]`,
                 `KWARGS[key]`, or (exported programs) the names of forward's arguments.
    model.py     with `runtime: "model.py"`: exactly one torch.nn.Module class; weights in a `.pt` of the same name, if
                 any.

Outputs are `<name>__<index>`, `RESULT[key]`, the keys of a returned dictionary, or in the order configured.

Config parameters: `INFERENCE_MODE` (on unless false), `DISABLE_OPTIMIZED_EXECUTION`, `DISABLE_CUDNN`,
`ENABLE_WEIGHT_SHARING`, `ENABLE_CACHE_CLEANING`, `INTRA_OP_THREAD_COUNT` (or `NUM_THREADS`), `INTER_OP_THREAD_COUNT`
(or `NUM_INTEROP_THREADS`), of which a process applies the first; `TORCH_COMPILE_OPTIONAL_PARAMETERS` (a JSON object)
has a `model.py` compiled.

An instance of KIND_GPU has a CUDA stream of its own and page-locked buffers (`optimization.input_pinned_memory` and
`output_pinned_memory` turn them off), and CUDA graphs where `optimization.cuda.graphs` asks for them (`buckets`).
Outputs that another model of an ensemble takes stay on the device.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.cpus import cpu_limit
from argosy_runtime.errors import invalid

from . import opening
from .running import TorchInstance

_INTRA = ("INTRA_OP_THREAD_COUNT", "NUM_THREADS")
_INTER = ("INTER_OP_THREAD_COUNT", "NUM_INTEROP_THREADS")
_lock = threading.Lock()
_chosen: dict[str, int] = {}


def complete_config(model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
    """Return `config` unchanged: PyTorch's files do not describe their batches.

    Raises ServingError without a model file.
    """
    opening.model_file(config, version_dir, config.name)
    return config


def load(spec: InstanceSpec, host: Host) -> TorchInstance:
    """Open the model on the instance's device.

    Raises ServingError that names the file, the tensor or the device.
    """
    if not spec.config.input or not spec.config.output:
        raise invalid(
            f"model '{spec.config.name}': PyTorch files do not tell their inputs and outputs; "
            "the model configuration must specify both"
        )
    _size_thread_pools(spec.config, host)
    path = opening.model_file(spec.config, spec.version_dir, spec.name)
    return TorchInstance(spec, opening.open_model(spec, path), host)


def _size_thread_pools(config: ModelConfig, host: Host) -> None:
    """Size PyTorch's thread pools, which a process has once, as the first model that sets a size requests.

    A later request that differs is logged. Until then there are no more threads than CPUs that the process may use.
    """
    parameters = Parameters(config)
    with _lock:
        _choose(parameters, _INTRA, torch.set_num_threads, host)
        _choose(parameters, _INTER, torch.set_num_interop_threads, host)


def _choose(parameters: Parameters, names: tuple[str, str], apply: Callable[[int], object], host: Host) -> None:
    name = next((name for name in names if name in parameters), None)
    if name is None:
        limit = cpu_limit()
        if limit is not None and names[0] not in _chosen:
            with suppress(RuntimeError):  # as where a size is set, below
                apply(limit)
        return
    requested = parameters.integer(name, 0, minimum=1)
    chosen = _chosen.setdefault(names[0], requested)
    if chosen != requested:
        host.log("warning", f"{name} {requested} is ignored: this process already runs with {chosen}")
        return
    try:
        apply(requested)
    except RuntimeError as error:  # the pool of inter-op threads cannot be resized once it has worked
        host.log("warning", f"{name} {requested} is ignored: {error}")


__all__ = ["complete_config", "load"]
