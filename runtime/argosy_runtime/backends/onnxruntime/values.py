"""Conversion of numpy arrays to ONNX Runtime's values and back: strings, BF16, scalars."""

import ctypes

import ml_dtypes
import numpy as np
import onnxruntime as ort

from argosy_runtime.errors import invalid
from argosy_runtime.messages import Array

ONNX_BFLOAT16 = 16  # TensorProto.BFLOAT16; numpy has no number for it


def to_texts(model: str, name: str, array: Array) -> Array:
    """Decode V2's BYTES to ONNX's strings, as UTF-8. Raises ServingError."""
    texts = np.empty(array.size, dtype=np.object_)
    try:
        texts[:] = [item.decode("utf-8") for item in array.ravel().tolist()]
    except UnicodeDecodeError as error:
        raise invalid(f"model '{model}', input '{name}': ONNX strings must be UTF-8: {error}") from error
    return texts.reshape(array.shape)


def from_ort(array: Array) -> Array:
    """Return a session's output, with strings as bytes."""
    if array.dtype != np.object_:
        return array
    encoded = np.empty(array.size, dtype=np.object_)
    encoded[:] = [str(item).encode("utf-8") for item in array.ravel().tolist()]
    return encoded.reshape(array.shape)


def value_of(array: Array) -> ort.OrtValue:
    """Return a value over an array, of BF16 too."""
    if array.dtype == ml_dtypes.bfloat16:
        bits = np.ascontiguousarray(array).view(np.uint16)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, ONNX_BFLOAT16)
    return ort.OrtValue.ortvalue_from_numpy(array)


def array_of(value: ort.OrtValue) -> Array:
    """Return a value on the host as an array."""
    if value.element_type() != ONNX_BFLOAT16:
        array: Array = value.numpy()
        return array
    shape = tuple(value.shape())
    count = int(np.prod(shape))
    bits = np.frombuffer(ctypes.string_at(value.data_ptr(), 2 * count), np.uint16)
    values: Array = bits.view(ml_dtypes.bfloat16)
    return values.reshape(shape)
