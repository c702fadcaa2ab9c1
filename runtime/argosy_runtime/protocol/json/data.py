"""The `data` of a tensor in JSON: nested or flat in, flat out."""

import math
from typing import Any, NoReturn

import numpy as np

from argosy_runtime.errors import internal, invalid
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.modelconfig.shapes import INT64_MAX
from argosy_runtime.protocol.tensors import DTYPES, InputBytes, element_count
from argosy_runtime.tensors import string_elements

from .nesting import MAX_NESTING, too_deep
from .text import typed, wrong_type

_ACCEPTED: dict[str, tuple[frozenset[type], str]] = {
    "b": (frozenset((bool,)), "boolean"),
    "u": (frozenset((int,)), "unsigned-integer"),
    "i": (frozenset((int,)), "signed-integer"),
    "f": (frozenset((int, float)), "number"),
}
_CANNOT_PARSE = "Unable to parse 'data'"


def read(data: Any, name: str, datatype: str, shape: tuple[int, ...], strings: InputBytes, limit: int) -> Array:
    """Return the array that JSON `data` holds. `limit` is the most bytes it may take.

    Integers wrap into a narrower type, as Triton's do. Raises INTERNAL where values and shape or type do not
    match,
    INVALID_ARG for FP16 and BF16, which JSON cannot carry. `data` of a shape without elements is not looked at.
    """
    if not shape or 0 in shape:
        return strings.empty(name, datatype, shape)
    data = typed(data, list, _CANNOT_PARSE)
    if datatype in ("FP16", "BF16"):
        raise invalid(
            f"receiving {datatype} data via JSON is not supported. Please use the binary data format for input {name}"
        )
    dtype = DTYPES.get(datatype)
    if dtype is None:
        raise invalid(f"invalid datatype for input {name}")
    if not dtype.hasobject:
        _check_overflow(name, math.prod(shape), dtype.itemsize)
    count = element_count(name, shape)
    if dtype.hasobject:
        return _read_strings(data, name, shape, count, strings, limit)
    _check_size(name, count * dtype.itemsize, limit)
    flat, types = _flatten(data, f"{_CANNOT_PARSE}: ")
    accepted, called = _ACCEPTED[dtype.kind]
    if not types <= accepted:
        _wrong_element(called)
    if len(flat) > count:
        raise internal(f"{_CANNOT_PARSE}: Shape does not match true shape of 'data' field")
    if len(flat) < count:
        raise internal("Failed to parse 'data' field: shape does not match true shape")
    return _numbers(flat, dtype, called).reshape(shape)


def _check_overflow(name: str, count: int, itemsize: int) -> None:
    """Raise INVALID_ARG where the size in bytes is no 64-bit number, and the count of elements is one."""
    if count <= INT64_MAX < count * itemsize:
        raise invalid(
            f"byte size overflow for input '{name}': element count ({count}) * data type size ({itemsize}) exceeds "
            f"maximum allowed size ({INT64_MAX})"
        )


def _numbers(flat: list[Any], dtype: np.dtype[np.generic], called: str) -> Array:
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.array(flat, dtype)
    if dtype.kind == "b":
        return np.array(flat, dtype)
    try:
        return np.array(flat, np.uint64 if dtype.kind == "u" else np.int64).astype(dtype)
    except OverflowError:
        _wrong_element(called)


def _wrong_element(called: str) -> NoReturn:
    if called == "number":
        raise internal(f"{_CANNOT_PARSE}: attempt to access JSON non-number as double")
    wrong_type(_CANNOT_PARSE, called)


def _read_strings(
    data: list[Any], name: str, shape: tuple[int, ...], count: int, strings: InputBytes, limit: int
) -> Array:
    flat, types = _flatten(data, "")
    if not types <= {str}:
        wrong_type("Unable to parse JSON bytes array", "string")
    elements = [item.encode("utf-8", "surrogatepass") for item in flat]
    _check_size(name, sum(map(len, elements)) + 4 * len(elements), limit)
    return strings.strings(name, shape, elements)


def size(data: list[Any], datatype: str) -> int:
    """Return the bytes that an input of generate will take: of its elements, or of strings at any depth."""
    dtype = DTYPES[datatype]
    if not dtype.hasobject:
        return len(data) * dtype.itemsize
    flat, _ = _flatten(data, "")
    return sum(len(item.encode("utf-8", "surrogatepass")) + 4 for item in flat if type(item) is str)


def _flatten(data: list[Any], context: str) -> tuple[list[Any], frozenset[type]]:
    """Return the scalars of nested lists in order, and the types among them."""
    types = frozenset(map(type, data))
    for _ in range(MAX_NESTING - 1):
        if list not in types:
            return data, types
        data = [item for part in data for item in (part if type(part) is list else (part,))]
        types = frozenset(map(type, data))
    raise too_deep(context)


def _check_size(name: str, size: int, limit: int) -> None:
    if size > limit:
        raise invalid(
            f"JSON input '{name}' has a byte_size ({size} bytes) that exceeds the maximum allowed value of "
            f"{limit} "
            "bytes. Use --http-max-input-size to increase the limit."
        )


def write(tensor: Tensor) -> tuple[list[Any], bool]:
    """Return a tensor's flat `data`, and whether every number in it is finite.

    Bytes that are not UTF-8 are carried by surrogates, for `json_text.dumps` to restore.
    """
    if tensor.datatype == "BYTES":
        return [item.decode("utf-8", "surrogateescape") for item in string_elements(tensor.array)], True
    if tensor.datatype in ("FP16", "BF16"):
        raise invalid(
            f"sending {tensor.datatype} data via JSON is not supported. Please use the binary data format for output"
        )
    array = tensor.array
    finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
    return array.ravel().tolist(), finite
