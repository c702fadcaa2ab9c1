"""Triton's data types as numpy's, and BYTES tensors in their serialized form."""

import struct
from contextlib import suppress
from typing import Any, Final

import numpy as np

from argosy_runtime.modelconfig import ConfigError, config_type, numpy_dtype
from argosy_runtime.modelconfig.datatypes import TABLE
from argosy_runtime.tensors import Array, StringsError, join_strings, split_strings, string_array, string_elements


def _numpy_types() -> dict[str, type]:
    """Return the numpy types by V2 name. In an environment without the package ml_dtypes BF16 has none."""
    types = {}
    for row in TABLE:
        with suppress(ConfigError):
            types[row.v2] = numpy_dtype(row.v2).type
    return types


_TYPES: Final = _numpy_types()
_NAMES: Final = {config_type(row.v2): row.v2 for row in TABLE}
_BYTES = config_type("BYTES")

# TRITONSERVER_DataType numbers its types as ModelConfig's DataType does.
NUMBERS = {name: number for number, name in _NAMES.items()}
"""TRITONSERVER_DataType numbers by V2 name."""

_NUMBERS: Final = {np.dtype(dtype): NUMBERS[name] for name, dtype in _TYPES.items()}

TRITON_STRING_TO_NUMPY: dict[str, type] = {
    row.config_name: bool if row.v2 == "BOOL" else _TYPES[row.v2] for row in TABLE if row.v2 in _TYPES
}


def triton_to_numpy_type(data_type: int) -> type | None:
    """Return the numpy type of a TRITONSERVER_DataType number; None for an unknown one."""
    return _TYPES.get(_NAMES.get(data_type, ""))


def numpy_to_triton_type(data_type: Any) -> int | None:
    """Return the TRITONSERVER_DataType number of a numpy type; None where Triton has no such type."""
    dtype = np.dtype(data_type)
    return _BYTES if dtype.kind == "S" else _NUMBERS.get(dtype)


def triton_string_to_numpy(triton_type_string: str) -> type:
    """Return the numpy type of a config's name, such as TYPE_FP32. Raises KeyError."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def wire_name(number: int) -> str:
    """Return the V2 name, such as FP32, of a TRITONSERVER_DataType number."""
    return _NAMES[number]


def serialize_byte_tensor(input_tensor: Array) -> bytes | tuple[()] | None:
    """Return every element in C order as a little-endian u32 length and its bytes.

    Like Triton's: an empty tensor gives an empty tuple, one that holds neither objects nor bytes gives None.
    """
    if input_tensor.size == 0:
        return ()
    return join_strings(string_elements(input_tensor)) if input_tensor.dtype.kind in "OS" else None


def deserialize_bytes_tensor(encoded_tensor: bytes) -> Array:
    """Return the inverse of `serialize_byte_tensor`: a one-dimensional object array.

    Raises struct.error where cut short, as Triton's does.
    """
    try:
        elements = split_strings(encoded_tensor)
    except StringsError as error:
        raise struct.error(str(error)) from None
    return string_array(elements, (len(elements),))
