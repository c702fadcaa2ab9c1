"""One run on a device by I/O binding: inputs and outputs are addresses there, and stay."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any, Final

import numpy as np
import onnxruntime as ort
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import staging
from argosy_runtime.backends.batching import Output
from argosy_runtime.backends.cuda import DeviceStream
from argosy_runtime.backends.staging import Staging
from argosy_runtime.device_arrays import DEVICE_COPIES, DeviceArray, DeviceMemory
from argosy_runtime.errors import internal
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.modelconfig.datatypes import element_size, numpy_dtype

from . import values
from .session import explained
from .signature import BFLOAT16, Signature

_DLPACK_CUDA: Final = 2


@dataclass(frozen=True, slots=True)
class Device:
    """Where a session computes: onnxruntime's name of it, its number, DLPack's words for both, and the stream."""

    name: str
    index: int
    dlpack: tuple[int, int]
    stream: DeviceStream

    @classmethod
    def cuda(cls, index: int, stream: DeviceStream) -> "Device":
        """Return a GPU."""
        return cls("cuda", index, (_DLPACK_CUDA, index), stream)


class OrtMemory(DeviceMemory):
    """What a session left in its device's memory."""

    def __init__(self, value: ort.OrtValue, datatype: str, device: Device) -> None:
        self.value = value
        self._datatype = datatype
        self._device = device

    def read(self, offset: int, count: int) -> Array:
        """See `DeviceMemory`."""
        target = np.empty(count, numpy_dtype(self._datatype))
        DEVICE_COPIES.fetched(target.nbytes)
        begin = self.value.data_ptr() + offset * target.itemsize
        self._device.stream.copy(target.ctypes.data, begin, target.nbytes)
        self._device.stream.synchronize()
        return target

    def __dlpack__(self, *, stream: object = None) -> object:
        return self.value.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device.dlpack


@dataclass(frozen=True, slots=True)
class _Bound:
    """An input: an address on the device, and what keeps it."""

    address: int
    shape: tuple[int, ...]
    datatype: str
    keeper: object


class DeviceFramework:
    """See `Framework`. Not for strings, which ONNX Runtime binds nowhere."""

    def __init__(
        self,
        config: ModelConfig,
        session: ort.InferenceSession,
        found: Signature,
        run_options: ort.RunOptions | None,
        device: Device,
    ) -> None:
        self._session = session
        self._signature = found
        self._run_options = run_options
        self._device = device
        pinned = device.stream.pinned
        self._incoming = Staging(pinned, staging.limit(config.optimization, "input_pinned_memory"))
        self._outgoing = Staging(pinned, staging.limit(config.optimization, "output_pinned_memory"))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """See `Framework`."""
        try:
            yield
        finally:
            self._device.stream.synchronize()
            self._incoming.reset()
            self._outgoing.reset()

    def gather(self, name: str, tensors: Sequence[Tensor]) -> _Bound:
        """See `Framework`."""
        bound = self._lying(tensors[0]) if len(tensors) == 1 else None
        bound = bound or self._joined(tensors)
        if bound.shape and prod(bound.shape) == 1 and self._signature.is_scalar(name):
            return _Bound(bound.address, (), bound.datatype, bound.keeper)
        return bound

    def _lying(self, tensor: Tensor) -> _Bound | None:
        """Return what is on the device already, None where it is not."""
        array = tensor.device
        if array is None or array.memory.__dlpack_device__() != self._device.dlpack:
            return None
        memory = array.memory
        value = memory.value if isinstance(memory, OrtMemory) else ort.OrtValue.from_dlpack(memory)
        offset = array.offset * (element_size(tensor.datatype) or 0)
        return _Bound(value.data_ptr() + offset, tensor.shape, tensor.datatype, (memory, value))

    def _joined(self, tensors: Sequence[Tensor]) -> _Bound:
        """Side by side in new memory of the device."""
        datatype, shape = tensors[0].datatype, tensors[0].shape
        if len(tensors) > 1:
            shape = (sum(tensor.shape[0] for tensor in tensors), *shape[1:])
        value = ort.OrtValue.ortvalue_from_shape_and_type(
            shape, _onnx_type(datatype), self._device.name, self._device.index
        )
        sizes = [tensor.spec().size for tensor in tensors]
        keepers: list[object] = [value]
        for tensor, size, end in zip(tensors, sizes, accumulate(sizes), strict=True):
            keepers.append(self._write(tensor, value.data_ptr() + end - size, size))
        return _Bound(value.data_ptr(), shape, datatype, keepers)

    def _write(self, tensor: Tensor, target: int, size: int) -> object:
        """Begin to copy one tensor to its place; what must be kept until that is over."""
        lying = self._lying(tensor)
        if lying is not None:
            self._device.stream.copy(target, lying.address, size)
            return lying
        source: Array = np.frombuffer(tensor.data, np.uint8)
        room = self._incoming.take(size)
        if room is not None:
            room[:] = source
            source = room
        DEVICE_COPIES.sent(size)
        self._device.stream.copy(target, source.ctypes.data, size)
        return source

    def run(self, inputs: Mapping[str, _Bound], wanted: Sequence[str]) -> Mapping[str, Output]:
        """See `Framework`. The work is on the same stream as the copies before it; not every provider waits for it."""
        name, index = self._device.name, self._device.index
        try:
            binding = self._session.io_binding()
            for key, given in inputs.items():
                binding.bind_input(key, name, index, _onnx_type(given.datatype), given.shape, given.address)
            for key in wanted:
                binding.bind_output(key, name, index)
            self._session.run_with_iobinding(binding, self._run_options)
            self._device.stream.synchronize()
            found = binding.get_outputs()
        except Exception as error:
            raise internal(explained(error)) from error
        return {key: self._output(key, value) for key, value in zip(wanted, found, strict=True)}

    def _output(self, name: str, value: ort.OrtValue) -> DeviceArray:
        return DeviceArray(OrtMemory(value, self._datatype(name), self._device), tuple(value.shape()))

    def _datatype(self, output: str) -> str:
        datatype = self._signature.outputs[output].datatype
        assert datatype is not None, "the configuration could not have named it"
        return datatype

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """See `Framework`."""
        fetched: dict[str, Array] = {}
        staged: dict[str, Array] = {}
        for name, output in outputs.items():
            if not isinstance(output, DeviceArray):
                fetched[name] = output
                continue
            assert isinstance(output.memory, OrtMemory)
            dtype = numpy_dtype(self._datatype(name))
            size = output.size * dtype.itemsize
            room = self._outgoing.take(size)
            target = np.empty(size, np.uint8) if room is None else room
            DEVICE_COPIES.fetched(size)
            self._device.stream.copy(target.ctypes.data, output.memory.value.data_ptr(), size)
            (fetched if room is None else staged)[name] = target.view(dtype).reshape(output.shape)
        self._device.stream.synchronize()
        # Out of the buffer, which the next batch writes to.
        return fetched | {name: array.copy() for name, array in staged.items()}


def _onnx_type(datatype: str) -> Any:
    return values.ONNX_BFLOAT16 if datatype == BFLOAT16 else numpy_dtype(datatype).type
