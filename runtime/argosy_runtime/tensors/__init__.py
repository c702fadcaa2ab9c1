"""Tensors: as arrays on the host, as the bytes of the wire, and as arrays that stay in a device's memory."""

from .strings import (
    Array,
    Data,
    StringsError,
    join_strings,
    split_strings,
    string_array,
    string_count,
    string_elements,
)
from .tensor import Tensor, TensorSpec, byte_size, device_tensor, raw_tensor

__all__ = [
    "Array",
    "Data",
    "StringsError",
    "Tensor",
    "TensorSpec",
    "byte_size",
    "device_tensor",
    "join_strings",
    "raw_tensor",
    "split_strings",
    "string_array",
    "string_count",
    "string_elements",
]
