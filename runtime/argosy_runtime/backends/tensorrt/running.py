"""One run of an engine: inputs to the device, the profile that fits them, outputs home."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from math import prod

import numpy as np
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import dlpack, staging
from argosy_runtime.backends.batching import Output
from argosy_runtime.backends.contract import Host
from argosy_runtime.backends.cuda import ComputeStream
from argosy_runtime.backends.staging import Staging
from argosy_runtime.device_arrays import DEVICE_COPIES, DeviceArray
from argosy_runtime.errors import internal
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.modelconfig.datatypes import element_size, numpy_dtype

from . import profiles
from .execution import Given, Made, ProfileContext
from .graphs import Graphs
from .memory import BlockMemory, BlockPool
from .signature import Shape, Signature


@dataclass(frozen=True, slots=True)
class Device:
    """Where an engine runs: DLPack's words for it, the instance's stream and its memory there."""

    dlpack: tuple[int, int]
    stream: ComputeStream
    pool: BlockPool


@dataclass(frozen=True, slots=True)
class _Values:
    """A shape tensor's, the same for all of a batch, which has so many requests."""

    array: Array
    requests: int


class PlanFramework:
    """See `Framework`."""

    def __init__(
        self,
        config: ModelConfig,
        instance: str,
        found: Signature,
        contexts: Sequence[ProfileContext],
        graphs: Graphs,
        device: Device,
        host: Host,
    ) -> None:
        self._batched = config.max_batch_size > 0
        self._instance = instance
        self._found = found
        self._contexts = contexts
        self._graphs = graphs
        self._device = device
        self._host = host
        pinned = device.stream.pinned
        self._incoming = Staging(pinned, staging.limit(config.optimization, "input_pinned_memory"))
        self._outgoing = Staging(pinned, staging.limit(config.optimization, "output_pinned_memory"))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """See `Framework`."""
        self._device.stream.enter()
        try:
            yield
        finally:
            self._device.stream.synchronize()
            self._incoming.reset()
            self._outgoing.reset()

    def gather(self, name: str, tensors: Sequence[Tensor]) -> "Given | _Values":
        """See `Framework`."""
        info = self._found.inputs[name]
        if info.is_shape:
            return _Values(tensors[0].array.reshape(-1), len(tensors))
        given = self._lying(tensors[0]) if len(tensors) == 1 else None
        given = given or self._joined(tensors)
        scalar = not info.shape and prod(given.shape) == 1
        return Given(given.address, (), given.keeper) if scalar else given

    def _lying(self, tensor: Tensor) -> Given | None:
        """Return what is on the device already, None where it is not."""
        array = tensor.device
        if array is None or array.memory.__dlpack_device__() != self._device.dlpack:
            return None
        address, keeper = _begin(array)
        begin = address + array.offset * (element_size(tensor.datatype) or 0)
        # TensorRT wants addresses at multiples of 256, which rows within a block need not be at.
        return None if begin % 256 else Given(begin, tensor.shape, keeper)

    def _joined(self, tensors: Sequence[Tensor]) -> Given:
        """Side by side in a block."""
        shape = tensors[0].shape
        if len(tensors) > 1:
            shape = (sum(tensor.shape[0] for tensor in tensors), *shape[1:])
        sizes = [tensor.spec().size for tensor in tensors]
        block = self._device.pool.take(sum(sizes))
        keepers: list[object] = [block]
        for tensor, size, end in zip(tensors, sizes, accumulate(sizes), strict=True):
            keepers.append(self._write(tensor, block.address + end - size, size))
        return Given(block.address, shape, keepers)

    def _write(self, tensor: Tensor, target: int, size: int) -> object:
        """Begin to copy one tensor to its place; what must be kept until that is over."""
        array = tensor.device
        if array is not None and array.memory.__dlpack_device__() == self._device.dlpack:
            address, keeper = _begin(array)
            self._device.stream.copy(target, address + array.offset * (element_size(tensor.datatype) or 0), size)
            return keeper
        source: Array = np.frombuffer(tensor.data, np.uint8)
        room = self._incoming.take(size)
        if room is not None:
            room[:] = source
            source = room
        DEVICE_COPIES.sent(size)
        self._device.stream.copy(target, source.ctypes.data, size)
        return source

    def run(self, inputs: "Mapping[str, Given | _Values]", wanted: Sequence[str]) -> Mapping[str, Output]:
        """See `Framework`."""
        total = self._total(inputs)
        given = {name: self._given(name, value, total) for name, value in inputs.items()}
        values = {name: each.values for name, each in given.items() if each.values is not None}
        context = self._context(given, values)
        made = self._graphs.run(context, given) or context.run(given, self._device.pool)
        self._device.stream.synchronize()
        return {name: self._output(name, made[name], total) for name in wanted}

    def _total(self, inputs: "Mapping[str, Given | _Values]") -> int:
        """Return the batch's size, 1 where the model does not batch."""
        if not self._batched:
            return 1
        plain = next((value for value in inputs.values() if isinstance(value, Given)), None)
        if plain is not None:
            return plain.shape[0] if plain.shape else 1
        return max((value.requests for value in inputs.values() if isinstance(value, _Values)), default=1)

    def _given(self, name: str, value: "Given | _Values", total: int) -> Given:
        """As TensorRT is told: of a batch, a shape tensor's values begin with the batch's size."""
        if isinstance(value, Given):
            return value
        info = self._found.inputs[name]
        parts = [np.array([total], value.array.dtype), value.array] if self._batched else [value.array]
        whole = np.ascontiguousarray(np.concatenate(parts))
        shape = (len(whole),) if info.shape else ()
        values = tuple(map(int, whole))
        if info.on_host:
            return Given(whole.ctypes.data, shape, whole, values)
        block = self._device.pool.take(whole.nbytes)
        self._device.stream.copy(block.address, whole.ctypes.data, whole.nbytes)
        return Given(block.address, shape, (block, whole), values)

    def _context(self, given: Mapping[str, Given], values: Mapping[str, Shape]) -> ProfileContext:
        """That of the profile that fits best. Raises ServingError in Triton's words where the batch does not fit it."""
        shapes = {name: each.shape for name, each in given.items()}
        every = [context.profile for context in self._contexts]
        profile, fits = profiles.chosen(every, shapes, values)
        if not fits and len(every) > 1:
            names = " ".join(each.name for each in every)
            self._host.log(
                "error",
                f"failed to find any Optimization Profile among [ {names}] to support the requested dimensions (or "
                "shape values), proceeding with first profile.",
            )
        for name, shape in shapes.items():
            wrong = profiles.problem(profile, name, shape) if name not in values else None
            if wrong is not None:
                raise internal(
                    f"request specifies invalid shape for input '{name}' for {self._instance}. Error details: {wrong}"
                )
        for name, each in values.items():
            wrong = profiles.value_problem(profile.values[name], each)
            if wrong is not None:
                raise internal(f"invalid shape values encountered for shape inputs: {wrong}")
        return next(context for context in self._contexts if context.profile is profile)

    def _output(self, name: str, made: Made, total: int) -> Output:
        info = self._found.outputs[name]
        if made.host is not None:
            return self._rows_of_values(made.host, total) if info.is_shape else made.host
        assert made.block is not None
        assert info.datatype is not None
        size = prod(made.shape) * (element_size(info.datatype) or 0)
        memory = BlockMemory(made.block, size, info.datatype, self._device.dlpack, self._device.stream)
        return DeviceArray(memory, made.shape)

    def _rows_of_values(self, values: Array, total: int) -> Array:
        """Return a shape tensor that comes out, for each row of the batch: its values without the batch's size in
        front.
        """
        return np.tile(values.reshape(-1)[1:], (total, 1)) if self._batched else values

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """See `Framework`."""
        fetched: dict[str, Array] = {}
        staged: dict[str, Array] = {}
        for name, output in outputs.items():
            if not isinstance(output, DeviceArray):
                fetched[name] = output
                continue
            assert isinstance(output.memory, BlockMemory)
            dtype = numpy_dtype(self._found.outputs[name].datatype or "")
            size = output.size * dtype.itemsize
            room = self._outgoing.take(size)
            target = np.empty(size, np.uint8) if room is None else room
            DEVICE_COPIES.fetched(size)
            self._device.stream.copy(target.ctypes.data, output.memory.block.address, size)
            (fetched if room is None else staged)[name] = target.view(dtype).reshape(output.shape)
        self._device.stream.synchronize()
        # Out of the buffer, which the next batch writes to.
        return fetched | {name: array.copy() for name, array in staged.items()}


def _begin(array: DeviceArray) -> tuple[int, object]:
    """Return where a block begins, whoever wrote it, and what keeps it."""
    memory = array.memory
    if isinstance(memory, BlockMemory):
        return memory.block.address, memory
    return dlpack.address_of(memory)


__all__ = ["Device", "PlanFramework"]
