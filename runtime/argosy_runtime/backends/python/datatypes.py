"""Triton's data types as numpy's, and BYTES tensors in their serialized form."""

import struct
from typing import Any

import ml_dtypes
import numpy as np

from argosy_runtime.messages import Array

_BY_NUMBER: dict[int, tuple[str, type]] = {
    1: ("BOOL", np.bool_),
    2: ("UINT8", np.uint8),
    3: ("UINT16", np.uint16),
    4: ("UINT32", np.uint32),
    5: ("UINT64", np.uint64),
    6: ("INT8", np.int8),
    7: ("INT16", np.int16),
    8: ("INT32", np.int32),
    9: ("INT64", np.int64),
    10: ("FP16", np.float16),
    11: ("FP32", np.float32),
    12: ("FP64", np.float64),
    13: ("BYTES", np.object_),
    14: ("BF16", ml_dtypes.bfloat16),
}
_NUMBERS = {np.dtype(dtype): number for number, (_, dtype) in _BY_NUMBER.items()}
_BYTES = 13

TRITON_STRING_TO_NUMPY: dict[str, type] = {
    "TYPE_STRING" if name == "BYTES" else f"TYPE_{name}": bool if name == "BOOL" else dtype
    for name, dtype in _BY_NUMBER.values()
}


def triton_to_numpy_type(data_type: int) -> type | None:
    """The numpy type of a TRITONSERVER_DataType number; None for an unknown one."""
    return _BY_NUMBER[data_type][1] if data_type in _BY_NUMBER else None


def numpy_to_triton_type(data_type: Any) -> int | None:
    """The TRITONSERVER_DataType number of a numpy type; None where Triton has no such type."""
    dtype = np.dtype(data_type)
    return _BYTES if dtype.kind == "S" else _NUMBERS.get(dtype)


def triton_string_to_numpy(triton_type_string: str) -> type:
    """The numpy type of a config's name, such as TYPE_FP32. Raises KeyError."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def wire_name(number: int) -> str:
    """The V2 name, such as FP32, of a TRITONSERVER_DataType number."""
    return _BY_NUMBER[number][0]


def element_bytes(element: Any) -> bytes:
    """One element of a BYTES tensor as bytes; anything but bytes goes through str and UTF-8."""
    return element if isinstance(element, bytes) else str(element).encode("utf-8")


def serialize_byte_tensor(input_tensor: Array) -> bytes | tuple[()] | None:
    """Every element in C order as a little-endian u32 length and its bytes.

    Like Triton's: an empty tensor gives an empty tuple, one that holds neither objects nor bytes gives None.
    """
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "OS":
        return None
    elements = [element_bytes(element) for element in input_tensor.ravel(order="C").tolist()]
    return b"".join(struct.pack("<I", len(element)) + element for element in elements)


def deserialize_bytes_tensor(encoded_tensor: bytes) -> Array:
    """The inverse of `serialize_byte_tensor`: a one-dimensional object array.

    Raises struct.error where cut short.
    """
    elements: list[bytes] = []
    offset = 0
    while offset < len(encoded_tensor):
        (length,) = struct.unpack_from("<I", encoded_tensor, offset)
        (element,) = struct.unpack_from(f"<{length}s", encoded_tensor, offset + 4)
        elements.append(element)
        offset += 4 + length
    array = np.empty(len(elements), dtype=np.object_)
    array[:] = elements
    return array
