"""Arrays of numbers, compared a few thousand elements at a time, so that no large temporary array is made."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from argosy_runtime.tensors import Array

CHUNK: Final = 1 << 16
"""Elements that are compared at once: half a megabyte of doubles."""
_Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NumberComparison:
    """`largest` absolute difference, `beyond`: elements beyond the tolerance. NaN equals NaN, an infinity itself."""

    largest: float = 0.0
    beyond: int = 0


def compare_numbers(stable: Array, candidate: Array, absolute: float, relative: float) -> NumberComparison:
    """Compare two arrays of one shape and datatype, element by element.

    An element agrees within `absolute + relative * |stable|`.
    """
    one, other = stable.reshape(-1), candidate.reshape(-1)
    largest, beyond = 0.0, 0
    for begin in range(0, one.size, CHUNK):
        mine, theirs = one[begin : begin + CHUNK], other[begin : begin + CHUNK]
        distance = _integer_distance(mine, theirs) if _is_integer(mine) else _float_distance(mine, theirs)
        largest = max(largest, float(distance.max()))
        with np.errstate(invalid="ignore", over="ignore"):
            limit = absolute + relative * np.abs(mine.astype(np.float64))
        beyond += int(np.count_nonzero((distance > limit) | np.isinf(distance)))
    return NumberComparison(largest, beyond)


def agreeing_rows(stable: Array, candidate: Array) -> tuple[int, int]:
    """Return the rows of two arrays of one shape, and how many of them have their largest element at the same index.

    A row is the last dimension; NaN counts as larger than any number.
    """
    width = stable.shape[-1] if stable.ndim else 1
    if not stable.size:
        return 0, 0
    one, other = stable.reshape(-1, width), candidate.reshape(-1, width)
    step, agreeing = max(1, CHUNK // width), 0
    for begin in range(0, len(one), step):
        mine, theirs = _comparable(one[begin : begin + step]), _comparable(other[begin : begin + step])
        agreeing += int(np.count_nonzero(np.argmax(mine, axis=-1) == np.argmax(theirs, axis=-1)))
    return len(one), agreeing


def _is_integer(array: Array) -> bool:
    return array.dtype.kind in "iub"


def _comparable(array: Array) -> Array:
    """Return numbers that numpy can order: those of types that are not its own as doubles."""
    return array if array.dtype.kind in "iubf" else array.astype(np.float64)


def _integer_distance(mine: Array, theirs: Array) -> _Doubles:
    """Return the absolute differences: exact, also of integers that no double can hold."""
    high = np.maximum(mine, theirs).astype(np.uint64)
    return (high - np.minimum(mine, theirs).astype(np.uint64)).astype(np.float64)


def _float_distance(mine: Array, theirs: Array) -> _Doubles:
    one, other = mine.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance: _Doubles = np.abs(one - other)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    distance[same] = 0.0
    distance[np.isnan(distance)] = np.inf
    return distance
