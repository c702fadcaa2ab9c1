"""BYTES tensors: object arrays of `bytes`, and the wire's encoding of them, a u32 length before each element."""

import struct
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.generic]
Data = bytes | memoryview

_LENGTH = struct.Struct("<I")


def string_elements(array: Array) -> list[bytes]:
    """Return the elements of a BYTES array in row-major order; others than bytes go through str, as in Triton."""
    return [item if isinstance(item, bytes) else str(item).encode() for item in array.ravel().tolist()]


def string_array(elements: Sequence[bytes], shape: tuple[int, ...]) -> Array:
    """Return the BYTES array of as many elements as the shape has."""
    array = np.empty(len(elements), dtype=np.object_)
    array[:] = elements
    return array.reshape(shape)


def join_strings(elements: Iterable[bytes]) -> bytes:
    """Return the elements of a BYTES tensor as the wire has them."""
    parts: list[bytes] = []
    for element in elements:
        parts.append(_LENGTH.pack(len(element)))
        parts.append(element)
    return b"".join(parts)


class StringsError(ValueError):
    """The bytes of a BYTES tensor end too early, after `count` whole elements: `left` of them remain where a length, or
    `length` bytes, are due.
    """

    def __init__(self, count: int, left: int, length: int | None) -> None:
        super().__init__("the bytes end within an element" if length is not None else "the bytes end within a length")
        self.count = count
        self.left = left
        self.length = length


def split_strings(data: Data, most: int | None = None) -> list[bytes]:
    """Split what `join_strings` joined, up to one element more than `most`. Raises StringsError."""
    elements: list[bytes] = []
    offset, size = 0, len(data)
    while offset < size and (most is None or len(elements) <= most):
        start = offset + _LENGTH.size
        if start > size:
            raise StringsError(len(elements), size - offset, None)
        length = int(_LENGTH.unpack_from(data, offset)[0])
        offset = start + length
        if offset > size:
            raise StringsError(len(elements), size - start, length)
        elements.append(bytes(data[start:offset]))
    return elements


def string_count(data: Data) -> int:
    """Return the number of elements in a BYTES tensor's bytes; -1 where they end within one."""
    count, offset, size = 0, 0, len(data)
    while offset < size:
        offset += _LENGTH.size
        if offset > size:
            return -1
        offset += int(_LENGTH.unpack_from(data, offset - _LENGTH.size)[0])
        count += 1
    return count if offset == size else -1
