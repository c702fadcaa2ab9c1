"""The ONNX Runtime backend: `model.onnx`, or a folder of that name with the file and its external data.

What may live here: session options from a configuration, an ONNX file's signature, and running it.
Config parameters are those of Triton's backend: `intra_op_thread_count`, `inter_op_thread_count`,
`execution_mode` (0 or 1), `enable_mem_arena`, `enable_mem_pattern`, `memory.enable_memory_arena_shrinkage`,
any `session.*` entry, and for GPUs `gpu_mem_limit`, `arena_extend_strategy`, `cudnn_conv_algo_search`,
`do_copy_in_default_stream`; `optimization.graph.level` and `optimization.execution_accelerators` (`cuda`,
`tensorrt`; `openvino` on the CPU) are honoured.

An instance of KIND_GPU has a CUDA stream of its own, on which it copies and computes by I/O binding, and page-locked
buffers (`optimization.input_pinned_memory` and `output_pinned_memory` turn them off); outputs that another model of an
ensemble takes stay on the device. Models of strings go by the host.
"""

from pathlib import Path

import onnxruntime as ort
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.batching import BatchedInstance
from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.backends.devices.cuda import CudaStream
from argosy_runtime.errors import ServingError

from . import autofill, options, session, validation
from .binding import Device, DeviceFramework
from .running import HostFramework


class OnnxInstance(BatchedInstance):
    """A session; `device` is None where it computes on the host.

    A model of strings runs on the host in any case: ONNX Runtime itself brings its other tensors to the device.
    """

    def __init__(self, spec: InstanceSpec, opened: ort.InferenceSession, device: Device | None) -> None:
        config, signature = spec.config, session.read_signature(opened)
        run_options = options.run_options(config)
        framework = (
            HostFramework(config.name, opened, signature, run_options)
            if device is None or signature.has_strings
            else DeviceFramework(config, opened, signature, run_options, device)
        )
        super().__init__(config, spec.version, framework)
        self._device = device

    def close(self) -> None:
        """Release the session and its memory."""
        super().close()
        if self._device is not None:
            self._device.stream.close()


def complete_config(model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
    """Return a copy of `config` with inputs, outputs, max_batch_size and dynamic_batching as the file says.

    Raises ServingError: UNAVAILABLE without the file, INTERNAL where it cannot be read, INVALID_ARG where
    it cannot batch but the configuration says so.
    """
    if (config.input or config.batch_input) and config.output:
        return config
    path = session.model_file(config, version_dir, config.name)
    session.check_installed(config, "KIND_CPU", 0, config.name)
    signature = session.read_signature(session.open_session(config, path, "KIND_CPU", 0, config.name))
    return autofill.completed(config, signature)


def load(spec: InstanceSpec, host: Host) -> OnnxInstance:
    """Open a session on the instance's device.

    Raises ServingError, as `complete_config` does, where configuration and file disagree, and where it would have
    to span GPUs.
    """
    validation.check_devices(spec.config, spec.kind)
    path = session.model_file(spec.config, spec.version_dir, spec.name)
    session.check_installed(spec.config, spec.kind, spec.device_id, spec.name)
    device = device_of(spec)
    try:
        stream = None if device is None else device.stream.handle
        opened = session.open_session(spec.config, path, spec.kind, spec.device_id, spec.name, stream)
        validation.check(spec.config, session.read_signature(opened))
    except ServingError:
        if device is not None:
            device.stream.close()
        raise
    return OnnxInstance(spec, opened, device)


def device_of(spec: InstanceSpec) -> Device | None:
    """Return the GPU of an instance, with a stream of its own."""
    return Device.cuda(spec.device_id, CudaStream(spec.device_id)) if spec.kind == "KIND_GPU" else None


__all__ = ["complete_config", "load"]
