"""One run on a device by I/O binding: inputs and outputs are addresses there, and stay."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.batching import Output
from argosy_runtime.backends.devices import dlpack
from argosy_runtime.backends.devices.batch import DeviceBatch, DeviceInput
from argosy_runtime.backends.devices.cuda import DeviceStream
from argosy_runtime.errors import internal
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.modelconfig.datatypes import numpy_dtype
from argosy_runtime.tensors.device_arrays import DeviceArray

from . import values
from .session import explained
from .signature import BFLOAT16, Signature


@dataclass(frozen=True, slots=True)
class Device:
    """A session's device: ONNX Runtime's name and ordinal of it, DLPack's type and ordinal, and the stream."""

    name: str
    index: int
    dlpack: tuple[int, int]
    stream: DeviceStream

    @classmethod
    def cuda(cls, index: int, stream: DeviceStream) -> "Device":
        """Return a GPU."""
        return cls("cuda", index, (dlpack.CUDA, index), stream)

    def allocate(self, size: int) -> tuple[int, object]:
        """Return the address of new memory of the device, and the value that owns it."""
        value = ort.OrtValue.ortvalue_from_shape_and_type((size,), np.uint8, self.name, self.index)
        return value.data_ptr(), value


class DeviceFramework:
    """A `Framework` on a device. Not for strings, which ONNX Runtime binds nowhere."""

    def __init__(
        self,
        config: ModelConfig,
        session: ort.InferenceSession,
        signature: Signature,
        run_options: ort.RunOptions | None,
        device: Device,
    ) -> None:
        self._session = session
        self._signature = signature
        self._run_options = run_options
        self._device = device
        self._batch = DeviceBatch(config, device.dlpack, device.stream, device.allocate)

    def batch(self) -> AbstractContextManager[None]:
        """Surround one run."""
        return self._batch.running()

    def gather(self, name: str, tensors: Sequence[Tensor]) -> DeviceInput:
        """Return an input joined on the device."""
        return self._batch.gather(tensors, scalar=self._signature.is_scalar(name))

    def run(self, inputs: Mapping[str, DeviceInput], requested: Sequence[str]) -> Mapping[str, Output]:
        """Run on the stream of the copies before, and wait: not every provider waits for the stream by itself."""
        name, index = self._device.name, self._device.index
        try:
            binding = self._session.io_binding()
            for key, bound in inputs.items():
                binding.bind_input(key, name, index, _onnx_type(bound.datatype), bound.shape, bound.address)
            for key in requested:
                binding.bind_output(key, name, index)
            self._session.run_with_iobinding(binding, self._run_options)
            self._device.stream.synchronize()
            outputs = binding.get_outputs()
        except Exception as error:
            raise internal(explained(error)) from error
        return {key: self._output(key, value) for key, value in zip(requested, outputs, strict=True)}

    def _output(self, name: str, value: ort.OrtValue) -> DeviceArray:
        datatype = self._signature.outputs[name].datatype
        assert datatype is not None, "the configuration could not have named it"
        return self._batch.output(value.data_ptr(), tuple(value.shape()), datatype, value)

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """Return the outputs on the host."""
        return self._batch.fetch(outputs)


def _onnx_type(datatype: str) -> Any:
    return values.ONNX_BFLOAT16 if datatype == BFLOAT16 else numpy_dtype(datatype).type
