"""The PyTorch backend: TorchScript, exported programs, AOTInductor packages, and a module's own Python
source.

What may live here: finding out which of the four a version holds, opening it, naming its inputs and
outputs, and running it.

    model.pt     TorchScript. Inputs are `<name>__<index>`, or the names of forward's arguments, or in the
    order configured; a forward of one dictionary takes them by name. model.pt2    `torch.export.save` or an
    AOTInductor package. Inputs are `INPUT__<index>`, `ARGS[0][key]`, `KWARGS[key]`, or (exported programs)
    the names of forward's arguments. model.py     with `runtime: "model.py"`: exactly one torch.nn.Module
    class; weights in a `.pt` of the same name, if any.

Outputs are `<name>__<index>`, `RESULT[key]`, the keys of a returned dictionary, or in the order configured.

Config parameters: `INFERENCE_MODE` (on unless false), `DISABLE_OPTIMIZED_EXECUTION`, `DISABLE_CUDNN`,
`ENABLE_WEIGHT_SHARING`, `ENABLE_CACHE_CLEANING`, `INTRA_OP_THREAD_COUNT` (or `NUM_THREADS`),
`INTER_OP_THREAD_COUNT` (or `NUM_INTEROP_THREADS`), of which a process takes the first it is told;
`TORCH_COMPILE_OPTIONAL_PARAMETERS` (a JSON object) has a `model.py` compiled.

An instance of KIND_GPU has a CUDA stream of its own and page-locked buffers (`optimization.input_pinned_memory` and
`output_pinned_memory` turn them off), and CUDA graphs where `optimization.cuda.graphs` asks for them (`buckets`).
Outputs that another model of an ensemble takes stay on the device.
"""

from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.errors import invalid

from . import forms, threads
from .running import TorchInstance


def complete_config(model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
    """`config` as it is: PyTorch's files do not say what batches are.

    Raises ServingError without a model file.
    """
    forms.model_file(config, version_dir, config.name)
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
    threads.configure(spec.config, host)
    path = forms.model_file(spec.config, spec.version_dir, spec.name)
    return TorchInstance(spec, forms.open_model(spec, path), host)


__all__ = ["complete_config", "load"]
