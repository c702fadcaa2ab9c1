"""One execution context under one profile: what TensorRT is told for a run, in the order it wants."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from argosy_runtime.backends.cuda import ComputeStream
from argosy_runtime.errors import internal
from argosy_runtime.messages import Array
from argosy_runtime.modelconfig.datatypes import element_size, numpy_dtype
from argosy_runtime.modelconfig.shapes import shape_text

from .library import Logger
from .memory import Block, BlockPool
from .outputs import OutputAllocator
from .signature import Profile, Shape, Signature, TensorInfo


@dataclass(frozen=True, slots=True)
class Given:
    """An input of a run: its address on the device, or on the host where TensorRT reads it there, and what keeps it.

    `values` are a shape tensor's, None of any other.
    """

    address: int
    shape: Shape
    keeper: object
    values: Shape | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """An output of a run: a block of the device, or an array where TensorRT writes on the host."""

    shape: Shape
    block: Block | None
    host: Array | None = None


class ProfileContext:
    """A context is used by one thread at a time; those of one engine share its weights."""

    def __init__(
        self, context: Any, profile: Profile, found: Signature, stream: ComputeStream, logger: Logger, instance: str
    ) -> None:
        self.profile = profile
        self._context = context
        self._found = found
        self._stream = stream
        self._logger = logger
        self._instance = instance
        self._allocators: dict[str, OutputAllocator] = {}

    def run(self, inputs: Mapping[str, Given], pool: BlockPool) -> dict[str, Made]:
        """Begin a run on the stream; the outputs are there when that is through. Raises ServingError (INTERNAL)."""
        self.bind_inputs(inputs)
        places = self.bind_outputs(pool)
        self.enqueue()
        return {name: self._made(place) for name, place in places.items()}

    def bind_inputs(self, inputs: Mapping[str, Given]) -> None:
        """Tell the shapes and addresses of all inputs."""
        for name, given in inputs.items():
            if self._found.inputs[name].dynamic and not self._context.set_input_shape(name, given.shape):
                raise self._logger.failure(
                    f"trt failed to set binding dimension to {shape_text(given.shape)} for input '{name}' for "
                    f"{self._instance}"
                )
            self._address(name, given.address)

    def bind_outputs(self, pool: BlockPool) -> "dict[str, Made | OutputAllocator]":
        """Memory for every output, wanted or not: a run writes all of them.

        Where a shape depends on the data, TensorRT asks for the memory itself.
        """
        on_host = {name: self._on_host(info) for name, info in self._found.outputs.items() if info.on_host}
        self._infer_shapes()
        return {name: on_host.get(name) or self._on_device(info, pool) for name, info in self._found.outputs.items()}

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

    def _on_host(self, info: TensorInfo) -> Made:
        assert info.datatype is not None
        values = np.zeros(info.shape, numpy_dtype(info.datatype))
        self._address(info.name, values.ctypes.data)
        return Made(info.shape, None, values)

    def _on_device(self, info: TensorInfo, pool: BlockPool) -> "Made | OutputAllocator":
        shape = tuple(self._context.get_tensor_shape(info.name))
        if -1 in shape:
            return self._allocator(info.name, pool)
        block = pool.take(size_of(info, shape))
        self._address(info.name, block.address)
        return Made(shape, block)

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
        """Return the same, and whether TensorRT could."""
        return bool(self._context.execute_async_v3(self._stream.handle))

    def _made(self, place: "Made | OutputAllocator") -> Made:
        # What the data decides TensorRT has told by the time that the run is begun.
        return place if isinstance(place, Made) else Made(place.shape, place.block)


def size_of(info: TensorInfo, shape: Shape) -> int:
    """Return bytes of a tensor of that shape."""
    assert info.datatype is not None, "the configuration could not have named it"
    return prod(shape) * (element_size(info.datatype) or 0)


__all__ = ["Given", "Made", "ProfileContext", "size_of"]
