"""One execution context under one profile: the calls of a run, in the order that TensorRT wants."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from argosy_runtime.backends.devices.cuda import CudaStream
from argosy_runtime.errors import internal
from argosy_runtime.messages import Array
from argosy_runtime.modelconfig.datatypes import element_size, numpy_dtype
from argosy_runtime.modelconfig.shapes import shape_text

from .library import Logger, trt
from .memory import Block, BlockPool
from .signature import Profile, Shape, Signature, TensorInfo


@dataclass(frozen=True, slots=True)
class InputBinding:
    """An input of a run at an address of the device, or of the host where TensorRT reads it there.

    `owner` keeps the memory. `values` are a shape tensor's, None of any other.
    """

    address: int
    shape: Shape
    owner: object
    values: Shape | None = None


@dataclass(frozen=True, slots=True)
class OutputBinding:
    """An output of a run: a block of the device, or an array where TensorRT writes on the host."""

    shape: Shape
    block: Block | None
    host: Array | None = None


class OutputAllocator(trt.IOutputAllocator):  # type: ignore[misc]  # TensorRT has no types
    """One output of a context whose shape depends on the data: TensorRT requests a block for each run.

    TensorRT does not own it, so it must live as long as the context.
    """

    def __init__(self, pool: BlockPool) -> None:
        trt.IOutputAllocator.__init__(self)
        self._pool = pool
        self.block: Block | None = None
        self.shape: tuple[int, ...] = ()

    def begin(self) -> None:
        """Prepare another run: the last one's block belongs to its output."""
        self.block, self.shape = None, ()

    def reallocate_output_async(self, tensor_name: str, memory: Any, size: int, alignment: int, stream: Any) -> int:
        """Return the address of `size` bytes, above 0 for an empty output too."""
        return self._allocated(size)

    def reallocate_output(self, tensor_name: str, memory: Any, size: int, alignment: int) -> int:
        """Return the address of `size` bytes: called by earlier releases."""
        return self._allocated(size)

    def notify_shape(self, tensor_name: str, shape: Any) -> None:
        """Take the output's shape, once TensorRT knows it."""
        self.shape = tuple(shape)

    def _allocated(self, size: int) -> int:
        if self.block is None or self.block.size < size:
            self.block = self._pool.take(size)
        return self.block.address


class ProfileContext:
    """An execution context, used by one thread at a time; those of one engine share its weights."""

    def __init__(
        self, context: Any, profile: Profile, signature: Signature, stream: CudaStream, logger: Logger, instance: str
    ) -> None:
        self.profile = profile
        self._context = context
        self._signature = signature
        self._stream = stream
        self._logger = logger
        self._instance = instance
        self._allocators: dict[str, OutputAllocator] = {}

    def run(self, inputs: Mapping[str, InputBinding], pool: BlockPool) -> dict[str, OutputBinding]:
        """Begin a run on the stream; the outputs are there when that is through. Raises ServingError (INTERNAL)."""
        self.bind_inputs(inputs)
        bindings = self.bind_outputs(pool)
        self.enqueue()
        return {name: self._made(binding) for name, binding in bindings.items()}

    def bind_inputs(self, inputs: Mapping[str, InputBinding]) -> None:
        """Set the shapes and addresses of all inputs."""
        for name, binding in inputs.items():
            if self._signature.inputs[name].dynamic and not self._context.set_input_shape(name, binding.shape):
                raise self._logger.failure(
                    f"trt failed to set binding dimension to {shape_text(binding.shape)} for input '{name}' for "
                    f"{self._instance}"
                )
            self._address(name, binding.address)

    def bind_outputs(self, pool: BlockPool) -> dict[str, OutputBinding | OutputAllocator]:
        """Set memory for every output, requested or not: a run writes all of them.

        Where a shape depends on the data, TensorRT asks an allocator for the memory.
        """
        outputs = self._signature.outputs
        on_host = {name: self._on_host(info) for name, info in outputs.items() if info.on_host}
        self._infer_shapes()
        return {name: on_host.get(name) or self._on_device(info, pool) for name, info in outputs.items()}

    def _infer_shapes(self) -> None:
        try:
            missing = self._context.infer_shapes()
        except RuntimeError as error:
            raise self._logger.failure(f"{error} for {self._instance}") from error
        if missing:
            raise internal(
                "failed to specify the dimensions of all input tensors or values of all input shape tensors: "
                f"{', '.join(missing)}"
            )

    def _on_host(self, info: TensorInfo) -> OutputBinding:
        assert info.datatype is not None
        values = np.zeros(info.shape, numpy_dtype(info.datatype))
        self._address(info.name, values.ctypes.data)
        return OutputBinding(info.shape, None, values)

    def _on_device(self, info: TensorInfo, pool: BlockPool) -> OutputBinding | OutputAllocator:
        shape = tuple(self._context.get_tensor_shape(info.name))
        if -1 in shape:
            return self._allocator(info.name, pool)
        block = pool.take(size_of(info, shape))
        self._address(info.name, block.address)
        return OutputBinding(shape, block)

    def _allocator(self, name: str, pool: BlockPool) -> OutputAllocator:
        allocator = self._allocators.get(name)
        if allocator is None:
            allocator = OutputAllocator(pool)
            if not self._context.set_output_allocator(name, allocator):
                raise self._logger.failure(f"failed to set the allocator of output '{name}' for {self._instance}")
            self._allocators[name] = allocator
        allocator.begin()
        return allocator

    def _address(self, name: str, address: int) -> None:
        if not self._context.set_tensor_address(name, address):
            raise self._logger.failure(f"failed to set the address of '{name}' for {self._instance}")

    def enqueue(self) -> None:
        """Begin the run that is bound."""
        if not self.enqueued():
            raise self._logger.failure(f"unable to enqueue for inference {self._instance}")

    def enqueued(self) -> bool:
        """Begin the run that is bound. Return whether TensorRT could."""
        return bool(self._context.execute_async_v3(self._stream.handle))

    def _made(self, binding: OutputBinding | OutputAllocator) -> OutputBinding:
        # Shapes that depend on the data are known once the run has begun.
        return binding if isinstance(binding, OutputBinding) else OutputBinding(binding.shape, binding.block)


def size_of(info: TensorInfo, shape: Shape) -> int:
    """Return the bytes of a tensor of that shape."""
    assert info.datatype is not None, "the configuration could not have named it"
    return prod(shape) * (element_size(info.datatype) or 0)


__all__ = ["InputBinding", "OutputAllocator", "OutputBinding", "ProfileContext", "size_of"]
