"""Memory for outputs whose shapes only the run itself finds."""

from typing import Any

from .library import trt
from .memory import Block, BlockPool


class OutputAllocator(trt.IOutputAllocator):  # type: ignore[misc]
    """One output of a context: for each run a block as large as TensorRT asks for, and the shape in the end.

    TensorRT holds on to it without keeping it, so it lasts as long as the context.
    """

    def __init__(self, pool: BlockPool) -> None:
        trt.IOutputAllocator.__init__(self)
        self._pool = pool
        self.block: Block | None = None
        self.shape: tuple[int, ...] = ()

    def begin(self) -> None:
        """Another run: what the last one wrote is somebody else's."""
        self.block, self.shape = None, ()

    def reallocate_output_async(self, tensor_name: str, memory: Any, size: int, alignment: int, stream: Any) -> int:
        """See `trt.IOutputAllocator`; `size` is above 0 for an empty output too."""
        return self._allocated(size)

    def reallocate_output(self, tensor_name: str, memory: Any, size: int, alignment: int) -> int:
        """See `trt.IOutputAllocator`: the form of earlier releases."""
        return self._allocated(size)

    def notify_shape(self, tensor_name: str, shape: Any) -> None:
        """See `trt.IOutputAllocator`."""
        self.shape = tuple(shape)

    def _allocated(self, size: int) -> int:
        if self.block is None or self.block.size < size:
            self.block = self._pool.take(size)
        return self.block.address


__all__ = ["OutputAllocator"]
