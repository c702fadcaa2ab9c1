"""The TensorRT backend: `model.plan`, an engine for one kind of GPU, or the GPU's own file in `cc_model_filenames`.

What may live here: opening a plan, reading its engine's signature, choosing a profile for a batch, and running it.

Instances are of KIND_GPU alone. `instance_group.profile` names the optimization profiles by index; each has an
execution context, and a batch runs under the one whose best shapes are nearest. Instances on one GPU share the engine.
Each has a CUDA stream of its own (with `optimization.priority`), page-locked buffers
(`optimization.input_pinned_memory` and `output_pinned_memory` turn them off), and CUDA graphs where
`optimization.cuda.graphs` asks for them (`graphspecs`). Outputs that another model of an ensemble takes stay on the
device.

Config parameters: `execution_context_allocation_strategy` (STATIC or ON_PROFILE_CHANGE); `VERSION_COMPATIBLE` lets a
plan run code of its own, as version-compatible ones do: for plans from a trusted source.

TensorRT 10 and 11, by the names that both have.
"""

from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup, ModelOptimizationPolicy

from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.backends.devices import dlpack
from argosy_runtime.backends.devices.cuda import CudaStream, Priority
from argosy_runtime.errors import ServingError, internal

from . import autofill, plan, validation
from .instance import PlanInstance
from .memory import BlockPool
from .running import Device
from .signature import read_profile, read_signature

_PRIORITIES: dict[int, Priority] = {
    ModelOptimizationPolicy.PRIORITY_MAX: "highest",
    ModelOptimizationPolicy.PRIORITY_MIN: "lowest",
}


def complete_config(model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
    """Return a copy of `config` with the engine's max_batch_size, dynamic_batching, inputs and outputs.

    The plan is opened on the first GPU of the first group that names one. Raises ServingError: UNAVAILABLE without
    the file or the driver, INTERNAL where the plan cannot be opened or contradicts the configuration.
    """
    first = config.instance_group[0] if config.instance_group else ModelInstanceGroup()
    if first.kind in (ModelInstanceGroup.KIND_CPU, ModelInstanceGroup.KIND_MODEL):
        validation.check_kind(config, ModelInstanceGroup.Kind.Name(first.kind))
    path = plan.plan_file(config, version_dir, config.name)
    gpu = first.gpus[0] if first.gpus else 0
    stream = stream_of(gpu, "")
    try:
        opened = plan.opened(config, path, gpu, stream.enter)
        signature = read_signature(opened.engine)
        indices = autofill.profile_indices(config, signature.profiles)
        used = [read_profile(opened.engine, signature, index, str(index)) for index in indices]
        return autofill.completed(config, signature, used)
    except ServingError as error:
        if error.message.startswith("unable to create TensorRT"):
            raise internal(f"unable to load plan file to auto complete config: {path}: {error.message}") from error
        raise
    finally:
        stream.close()


def load(spec: InstanceSpec, host: Host) -> PlanInstance:
    """Return one instance's contexts on its GPU.

    Raises ServingError, as `complete_config` does, and where configuration and engine disagree.
    """
    validation.check_kind(spec.config, spec.kind)
    path = plan.plan_file(spec.config, spec.version_dir, spec.name)
    device = device_of(spec)
    try:
        opened = plan.opened(spec.config, path, spec.device_id, device.stream.enter)
        return PlanInstance(spec, opened, device, host)
    except Exception:
        device.pool.close()
        device.stream.close()
        raise


def device_of(spec: InstanceSpec) -> Device:
    """Return the GPU of an instance, with a stream of its own."""
    stream = stream_of(spec.device_id, _PRIORITIES.get(spec.config.optimization.priority, ""))
    return Device((dlpack.CUDA, spec.device_id), stream, BlockPool(stream))


def stream_of(device_id: int, priority: Priority) -> CudaStream:
    """Return a stream on a GPU."""
    return CudaStream(device_id, priority)


__all__ = ["complete_config", "load"]
