"""One run of an engine: inputs to the device, the profile that fits them, outputs to the host."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.batch_io import batch_input_names, ragged_input_names
from argosy_runtime.backends.batching import Output
from argosy_runtime.backends.contract import Host
from argosy_runtime.backends.devices.batch import DeviceBatch, DeviceInput
from argosy_runtime.backends.devices.cuda import CudaStream
from argosy_runtime.errors import internal
from argosy_runtime.messages import Array, Tensor

from . import profiles
from .execution import InputBinding, OutputBinding, ProfileContext
from .graphs import Graphs
from .memory import BlockPool
from .signature import Shape, Signature

_ALIGNMENT: Final = 256
"""TensorRT wants addresses at multiples of this, which rows within a block need not be at."""


@dataclass(frozen=True, slots=True)
class Device:
    """An engine's device: DLPack's type and ordinal, the instance's stream and its memory there."""

    dlpack: tuple[int, int]
    stream: CudaStream
    pool: BlockPool

    def allocate(self, size: int) -> tuple[int, object]:
        """Return the address of a new block, and the block."""
        block = self.pool.take(size)
        return block.address, block


@dataclass(frozen=True, slots=True)
class _ShapeValues:
    """A shape tensor's values, the same for all requests of a batch, and the number of requests."""

    array: Array
    requests: int


class PlanFramework:
    """A `Framework` on one engine."""

    def __init__(
        self,
        config: ModelConfig,
        instance: str,
        signature: Signature,
        contexts: Sequence[ProfileContext],
        graphs: Graphs,
        device: Device,
        host: Host,
    ) -> None:
        self._batched = config.max_batch_size > 0
        self._without_rows = ragged_input_names(config) | set(batch_input_names(config))
        self._instance = instance
        self._signature = signature
        self._contexts = contexts
        self._graphs = graphs
        self._device = device
        self._host = host
        self._batch = DeviceBatch(config, device.dlpack, device.stream, device.allocate, _ALIGNMENT)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Make the device this thread's for one run."""
        self._device.stream.enter()
        with self._batch.running():
            yield

    def gather(self, name: str, tensors: Sequence[Tensor]) -> DeviceInput | _ShapeValues:
        """Return an input joined on the device, or the values of a shape tensor."""
        info = self._signature.inputs[name]
        if info.is_shape:
            return _ShapeValues(tensors[0].array.reshape(-1), len(tensors))
        return self._batch.gather(tensors, scalar=not info.shape)

    def run(self, inputs: Mapping[str, DeviceInput | _ShapeValues], requested: Sequence[str]) -> Mapping[str, Output]:
        """Run under the profile that fits best, as a CUDA graph where one was captured, and wait."""
        total = self._total(inputs)
        bindings = {name: self._binding(name, value, total) for name, value in inputs.items()}
        values = {name: binding.values for name, binding in bindings.items() if binding.values is not None}
        context = self._context(bindings, values)
        outputs = self._graphs.run(context, bindings) or context.run(bindings, self._device.pool)
        self._device.stream.synchronize()
        return {name: self._output(name, outputs[name], total) for name in requested}

    def _total(self, inputs: Mapping[str, DeviceInput | _ShapeValues]) -> int:
        """Return the batch's size, 1 where the model does not batch."""
        if not self._batched:
            return 1
        for name, value in inputs.items():
            if isinstance(value, DeviceInput) and name not in self._without_rows:
                return value.shape[0] if value.shape else 1
        return max((value.requests for value in inputs.values() if isinstance(value, _ShapeValues)), default=1)

    def _binding(self, name: str, value: DeviceInput | _ShapeValues, total: int) -> InputBinding:
        """Return an input as TensorRT takes it: of a batch, a shape tensor's values begin with the batch's size."""
        if isinstance(value, DeviceInput):
            return InputBinding(value.address, value.shape, value.owner)
        info = self._signature.inputs[name]
        parts = [np.array([total], value.array.dtype), value.array] if self._batched else [value.array]
        array = np.ascontiguousarray(np.concatenate(parts))
        shape = (len(array),) if info.shape else ()
        values = tuple(map(int, array))
        if info.on_host:
            return InputBinding(array.ctypes.data, shape, array, values)
        block = self._device.pool.take(array.nbytes)
        self._device.stream.copy(block.address, array.ctypes.data, array.nbytes)
        return InputBinding(block.address, shape, (block, array), values)

    def _context(self, inputs: Mapping[str, InputBinding], values: Mapping[str, Shape]) -> ProfileContext:
        """Return the context of the profile that fits best. Raises ServingError in Triton's words where none fits."""
        shapes = {name: binding.shape for name, binding in inputs.items()}
        candidates = [context.profile for context in self._contexts]
        profile, fits = profiles.chosen(candidates, shapes, values)
        if not fits and len(candidates) > 1:
            names = " ".join(candidate.name for candidate in candidates)
            self._host.log(
                "error",
                f"failed to find any Optimization Profile among [ {names}] to support the requested dimensions (or "
                "shape values), proceeding with first profile.",
            )
        for name, shape in shapes.items():
            problem = profiles.problem(profile, name, shape) if name not in values else None
            if problem is not None:
                raise internal(
                    f"request specifies invalid shape for input '{name}' for {self._instance}. Error details: {problem}"
                )
        for name, shape in values.items():
            problem = profiles.value_problem(profile.values[name], shape)
            if problem is not None:
                raise internal(f"invalid shape values encountered for shape inputs: {problem}")
        return next(context for context in self._contexts if context.profile is profile)

    def _output(self, name: str, binding: OutputBinding, total: int) -> Output:
        info = self._signature.outputs[name]
        if binding.host is not None:
            return self._rows_of_values(binding.host, total) if info.is_shape else binding.host
        assert binding.block is not None
        assert info.datatype is not None
        return self._batch.output(binding.block.address, binding.shape, info.datatype, binding.block)

    def _rows_of_values(self, values: Array, total: int) -> Array:
        """Return a shape tensor's values for each row of the batch, without the batch's size in front."""
        return np.tile(values.reshape(-1)[1:], (total, 1)) if self._batched else values

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """Return the outputs on the host."""
        return self._batch.fetch(outputs)


__all__ = ["Device", "PlanFramework"]
