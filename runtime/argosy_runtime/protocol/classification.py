"""The classification extension: an output's `k` best elements as "value:index[:label]"."""

import numpy as np

from argosy_runtime.errors import invalid
from argosy_runtime.messages import Array, Tensor

from .model_view import ModelView

MAX_ELEMENTS = 1_000_000
_FORMATS = {"u": "%d", "i": "%d", "f": "%f"}


def classify(tensor: Tensor, count: int, model: ModelView) -> Tensor:
    """Return the `count` greatest elements of each batch entry, as BYTES of shape [batch, k], or [k] without a
    batch.

    Equal elements keep their order. Raises INVALID_ARG for types that have no order here, and for huge
    tensors.
    """
    array = tensor.array
    pattern = _FORMATS.get(array.dtype.kind)
    if pattern is None or tensor.datatype in ("FP16", "BF16"):
        raise invalid(f"class result not available for output due to unsupported type '{tensor.datatype}'")
    batch = array.shape[0] if model.batches and array.ndim else None
    rows = array.reshape(batch if batch is not None else 1, -1) if array.size else array.reshape(batch or 1, 0)
    if rows.shape[1] > MAX_ELEMENTS:
        raise invalid("classification output tensor too large")
    labels = model.labels(tensor.name)
    width = min(count, rows.shape[1])
    result = np.empty((len(rows), width), dtype=np.object_)
    for row, best in zip(rows, result, strict=True):
        best[:] = [
            _entry(pattern % row[index], index, labels[index] if index < len(labels) else None)
            for index in _descending(row)[:width].tolist()
        ]
    return Tensor(tensor.name, "BYTES", result if batch is not None else result.reshape(width))


def _descending(row: Array) -> Array:
    reversed_order = np.argsort(row[::-1], kind="stable")[::-1]
    return len(row) - 1 - reversed_order


def _entry(value: str, index: int, label: str | None) -> bytes:
    return (f"{value}:{index}" if not label else f"{value}:{index}:{label}").encode()
