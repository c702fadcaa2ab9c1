"""Samples for TensorRT's int8 calibration, before 11: in batches, on the device."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from argosy_runtime.backends.cuda import ComputeStream
from argosy_runtime.backends.tensorrt.library import trt
from argosy_runtime.backends.tensorrt.memory import Block, BlockPool
from argosy_runtime.builder.contract import Array, Progress

CLASSES: Mapping[str, str] = {
    "entropy2": "IInt8EntropyCalibrator2",
    "entropy": "IInt8EntropyCalibrator",
    "minmax": "IInt8MinMaxCalibrator",
}
"""TensorRT's calibrators, by the option's words."""


def calibrator(kind: str, rows: Sequence[Mapping[str, Array]], size: int, stream: ComputeStream, told: Progress) -> Any:
    """A calibrator that hands out the rows in batches of `size`; what is left over at the end is not used."""
    base: Any = getattr(trt, CLASSES[kind])
    pool = BlockPool(stream)

    class Calibrator(base):  # type: ignore[misc]
        """See TensorRT's class of that name. What is raised here TensorRT only prints, so it is kept."""

        def __init__(self) -> None:
            base.__init__(self)
            self.error: Exception | None = None
            self._given = 0
            self._blocks: list[Block] = []

        def get_batch_size(self) -> int:
            return size

        def get_batch(self, names: Sequence[str]) -> list[int] | None:
            try:
                return self._next(names)
            except Exception as error:
                self.error = error
                return None

        def _next(self, names: Sequence[str]) -> list[int] | None:
            rows_left = rows[self._given : self._given + size]
            if len(rows_left) < size:
                return None
            self._given += size
            self._blocks = [self._sent(np.stack([row[name] for row in rows_left])) for name in names]
            stream.synchronize()
            told(-1, f"calibrated on {self._given} of {len(rows)} samples")
            return [block.address for block in self._blocks]

        def _sent(self, array: Array) -> Block:
            whole = np.ascontiguousarray(array)
            block = pool.take(whole.nbytes)
            stream.copy(block.address, whole.ctypes.data, whole.nbytes)
            stream.synchronize()
            return block

        def read_calibration_cache(self) -> None:
            return None

        def write_calibration_cache(self, cache: Any) -> None:
            """The engine holds what was found."""

    return Calibrator()


__all__ = ["CLASSES", "calibrator"]
