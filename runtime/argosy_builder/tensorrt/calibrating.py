"""Samples for TensorRT's int8 calibration, before 11: in batches, on the device."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from argosy_builder.contract import Array, Progress
from argosy_builder.data import Purpose
from argosy_runtime.backends.devices.cuda import CudaStream
from argosy_runtime.backends.tensorrt.library import trt
from argosy_runtime.backends.tensorrt.memory import Block, BlockPool

CLASSES: Mapping[str, str] = {
    "entropy2": "IInt8EntropyCalibrator2",
    "entropy": "IInt8EntropyCalibrator",
    "minmax": "IInt8MinMaxCalibrator",
}
"""TensorRT's calibrators, by the option's words."""


class Batches:
    """The rows in batches of `size` on the device; what is left over at the end is not used."""

    def __init__(self, rows: Sequence[Mapping[str, Array]], size: int, stream: CudaStream, progress: Progress) -> None:
        self.size = size
        self._rows, self._stream, self._progress = rows, stream, progress
        self._pool = BlockPool(stream)
        self._used = 0
        self._blocks: list[Block] = []

    def next(self, names: Sequence[str]) -> list[int] | None:
        """Return the addresses of the next batch's tensors, which stay until the one after; None at the end."""
        rows = self._rows[self._used : self._used + self.size]
        if len(rows) < self.size:
            return None
        self._used += self.size
        self._blocks = [self._sent(np.stack([row[name] for row in rows])) for name in names]
        self._progress(-1, f"calibrated on {self._used} of {len(self._rows)} samples")
        return [block.address for block in self._blocks]

    def _sent(self, array: Array) -> Block:
        contiguous = np.ascontiguousarray(array)
        block = self._pool.take(contiguous.nbytes)
        self._stream.copy(block.address, contiguous.ctypes.data, contiguous.nbytes)
        self._stream.synchronize()
        return block


def calibrator(kind: str, batches: Batches) -> Any:
    """Return TensorRT's calibrator of that kind on these batches."""
    base: Any = getattr(trt, CLASSES[kind])

    class Calibrator(base):  # type: ignore[misc]  # a class of TensorRT, which has no types
        """Feeds the batches to TensorRT, which only prints exceptions: the last is stored in `error`."""

        def __init__(self) -> None:
            base.__init__(self)
            self.error: Exception | None = None

        def get_batch_size(self) -> int:
            return batches.size

        def get_batch(self, names: Sequence[str]) -> list[int] | None:
            try:
                return batches.next(names)
            except Exception as error:
                self.error = error
                return None

        def read_calibration_cache(self) -> None:
            return None

        def write_calibration_cache(self, cache: Any) -> None:
            """Ignore the cache, as the engine has the ranges."""

    return Calibrator()


def check(calibrated: Any) -> None:
    """Raise BuildError where TensorRT could not be given the data."""
    error = calibrated.error
    if error is not None:
        raise Purpose.CALIBRATION.error(f"{error!r}; it must fit the model") from error


__all__ = ["CLASSES", "Batches", "calibrator", "check"]
