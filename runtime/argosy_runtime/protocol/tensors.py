"""The bytes of a request's inputs as arrays, with Triton's messages where they do not fit."""

from math import prod

import numpy as np

from argosy_runtime.errors import invalid
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.modelconfig import numpy_dtype
from argosy_runtime.modelconfig.datatypes import TABLE
from argosy_runtime.modelconfig.shapes import size_problem
from argosy_runtime.tensors import Data, StringsError, raw_tensor, split_strings, string_array

DTYPES: dict[str, np.dtype[np.generic]] = {row.v2: numpy_dtype(row.v2) for row in TABLE}


class InputBytes:
    """Turns the bytes of one request's inputs into arrays; its messages name the request and the model."""

    __slots__ = ("_model", "_prefix")

    def __init__(self, model_name: str, prefix: str) -> None:
        self._model = model_name
        self._prefix = prefix

    def tensor(self, name: str, datatype: str, shape: tuple[int, ...], data: Data) -> Tensor:
        """Return a tensor over `data`, whose size is checked; only BYTES are decoded."""
        dtype = DTYPES.get(datatype)
        if dtype is None:
            raise invalid(f"invalid datatype for input {name}")
        count = element_count(name, shape)
        if dtype.hasobject:
            return Tensor(name, datatype, self._strings(name, shape, count, data))
        expected = count * dtype.itemsize
        if expected != len(data):
            raise invalid(
                f"{self._prefix}input byte size mismatch for input '{name}' for model '{self._model}'. "
                f"Expected {expected}, got {len(data)}"
            )
        return raw_tensor(name, datatype, shape, data)

    def array(self, name: str, datatype: str, shape: tuple[int, ...], data: Data) -> Array:
        """Return the same as an array: a copy only of unaligned bytes, and of BYTES."""
        return self.tensor(name, datatype, shape, data).array

    def strings(self, name: str, shape: tuple[int, ...], elements: list[bytes]) -> Array:
        """Return a BYTES array of separated elements. Raises INVALID_ARG unless the shape has as many."""
        count = element_count(name, shape)
        of = f"for inference input '{name}' for model '{self._model}'"
        if len(elements) > count:
            raise invalid(f"{self._prefix}unexpected number of string elements {count + 1} {of}, expecting {count}")
        if len(elements) < count:
            raise invalid(f"{self._prefix}expected {count} string elements {of}, got {len(elements)}")
        return string_array(elements, shape)

    def _strings(self, name: str, shape: tuple[int, ...], count: int, data: bytes | memoryview) -> Array:
        try:
            elements = split_strings(data, most=count)
        except StringsError as error:
            raise invalid(self._cut_short(name, error)) from None
        return self.strings(name, shape, elements)

    def _cut_short(self, name: str, error: StringsError) -> str:
        if error.length is None:
            return (
                f"{self._prefix}incomplete string length indicator for inference input '{name}' for model "
                f"'{self._model}', expecting 4 bytes but only {error.left} bytes available. Please make sure the "
                "string length indicator is in one buffer."
            )
        # Triton reports this from a place that knows neither request nor model.
        return (
            f"incomplete string data for inference input '{name}', expecting string of length {error.length} "
            f"but only {error.left} bytes available"
        )


def element_count(name: str, shape: tuple[int, ...]) -> int:
    """Return the number of elements of a shape. Raises INVALID_ARG for one that no tensor may have."""
    if problem := size_problem(shape):
        raise invalid(f"invalid shape for input '{name}': {problem}")
    return prod(shape)
