"""Tensors as bytes: little-endian elements, BYTES as a u32 length before each element."""

import struct
from math import prod

import ml_dtypes
import numpy as np

from argosy_runtime.errors import invalid
from argosy_runtime.messages import Array, Tensor

DTYPES: dict[str, np.dtype[np.generic]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "BYTES": np.dtype(np.object_),
}
MAX_INT64 = 2**63 - 1
_LENGTH = struct.Struct("<I")


class InputBytes:
    """Turns the bytes of one request's inputs into arrays; its messages name the request and the model."""

    __slots__ = ("_model", "_prefix")

    def __init__(self, model_name: str, prefix: str) -> None:
        self._model = model_name
        self._prefix = prefix

    def array(self, name: str, datatype: str, shape: tuple[int, ...], data: bytes | memoryview) -> Array:
        """An array over `data`: no copy, unless the bytes lie where their type cannot be read, or are
        BYTES.
        """
        dtype = DTYPES.get(datatype)
        if dtype is None:
            raise invalid(f"invalid datatype for input {name}")
        count = element_count(name, shape)
        if dtype.hasobject:
            return self._strings(name, shape, count, data)
        expected = count * dtype.itemsize
        if expected != len(data):
            raise invalid(
                f"{self._prefix}input byte size mismatch for input '{name}' for model '{self._model}'. "
                f"Expected {expected}, got {len(data)}"
            )
        if not count:
            return np.empty(shape, dtype)
        array = np.frombuffer(data, dtype)
        if not array.flags.aligned:
            array = array.copy()
        return array.reshape(shape)

    def strings(self, name: str, shape: tuple[int, ...], elements: list[bytes]) -> Array:
        """A BYTES array of already separated elements; an error unless there are as many as the shape
        says.
        """
        count = element_count(name, shape)
        of = f"for inference input '{name}' for model '{self._model}'"
        if len(elements) > count:
            raise invalid(f"{self._prefix}unexpected number of string elements {count + 1} {of}, expecting {count}")
        if len(elements) < count:
            raise invalid(f"{self._prefix}expected {count} string elements {of}, got {len(elements)}")
        array = np.empty(count, dtype=np.object_)
        array[:] = elements
        return array.reshape(shape)

    def _strings(self, name: str, shape: tuple[int, ...], count: int, data: bytes | memoryview) -> Array:
        elements: list[bytes] = []
        offset, size = 0, len(data)
        of = f"for inference input '{name}' for model '{self._model}'"
        while offset < size and len(elements) <= count:
            if size - offset < _LENGTH.size:
                raise invalid(
                    f"{self._prefix}incomplete string length indicator {of}, expecting 4 bytes but only "
                    f"{size - offset} bytes available. Please make sure the string length indicator is in "
                    "one buffer."
                )
            (length,) = _LENGTH.unpack_from(data, offset)
            offset += _LENGTH.size
            if size - offset < length:
                # Triton tells this one in another place, where it knows neither request nor model.
                raise invalid(
                    f"incomplete string data for inference input '{name}', expecting string of length {length} "
                    f"but only {size - offset} bytes available"
                )
            elements.append(bytes(data[offset : offset + length]))
            offset += length
        return self.strings(name, shape, elements)


def element_count(name: str, shape: tuple[int, ...]) -> int:
    """How many elements a shape holds. Dimensions must be non-negative and their product an int64."""
    if any(dim < 0 or dim > MAX_INT64 for dim in shape):
        raise invalid(
            f"invalid shape for input '{name}': shape {shape_text(shape)} contains one or more invalid dimensions"
        )
    count = prod(shape)
    if count > MAX_INT64:
        raise invalid(
            f"invalid shape for input '{name}': shape {shape_text(shape)} causes total element count to "
            "exceed "
            f"maximum size of {MAX_INT64}"
        )
    return count


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as messages print it: [1,16]."""
    return f"[{','.join(map(str, shape))}]"


def elements_of(tensor: Tensor) -> list[bytes]:
    """The elements of a BYTES tensor in row-major order; str elements become UTF-8."""
    return [
        item if isinstance(item, bytes) else str(item).encode() if isinstance(item, str) else bytes(item)
        for item in tensor.array.ravel().tolist()
    ]


def to_bytes(tensor: Tensor) -> bytes:
    """A tensor's bytes as the binary extension and raw gRPC contents carry them."""
    if tensor.datatype != "BYTES":
        return tensor.array.tobytes()
    parts: list[bytes] = []
    for element in elements_of(tensor):
        parts.append(_LENGTH.pack(len(element)))
        parts.append(element)
    return b"".join(parts)
