"""The bytes of a request's inputs as arrays, with Triton's messages where they do not fit."""

from math import prod
from typing import Final

import numpy as np

from argosy_runtime.errors import FaultyInputsError, invalid
from argosy_runtime.messages import Array, InferRequest, Tensor
from argosy_runtime.modelconfig import numpy_dtype
from argosy_runtime.modelconfig.datatypes import TABLE
from argosy_runtime.modelconfig.input_order import input_order
from argosy_runtime.modelconfig.shapes import size_problem
from argosy_runtime.tensors import Data, StringsError, raw_tensor, split_strings, string_array

DTYPES: dict[str, np.dtype[np.generic]] = {row.v2: numpy_dtype(row.v2) for row in TABLE}


_NOTHING: Final = string_array([], (0,))


class InputBytes:
    """Turns the bytes of one request's inputs into arrays; its messages name the request and the model.

    Data that does not fit its shape leaves an empty array, and is reported by `check` after the whole request is read:
    other faults of a request come first.
    """

    __slots__ = ("_faults", "_model", "_prefix", "_specs")

    def __init__(self, model_name: str, prefix: str) -> None:
        self._model = model_name
        self._prefix = prefix
        self._faults: dict[str, str] = {}
        self._specs: dict[str, tuple[str, tuple[int, ...]]] = {}

    def tensor(self, name: str, datatype: str, shape: tuple[int, ...], data: Data) -> Tensor:
        """Return a tensor over `data`, whose size is checked; only BYTES are decoded."""
        count = self.count(name, datatype, shape, len(data))
        if count is None:
            return Tensor(name, datatype, _NOTHING)
        if datatype == "BYTES":
            return Tensor(name, datatype, self._strings(name, shape, count, data))
        return raw_tensor(name, datatype, shape, data)

    def empty(self, name: str, datatype: str, shape: tuple[int, ...]) -> Array:
        """Return an array of a shape without elements."""
        element_count(name, shape)
        dtype = DTYPES.get(datatype)
        if dtype is None:
            return self._unfit(name, datatype, shape, f"invalid datatype for input {name}")
        return np.zeros(shape, dtype)

    def count(self, name: str, datatype: str, shape: tuple[int, ...], size: int) -> int | None:
        """Return the number of elements of a tensor; None, which `check` reports, if its data cannot have `size`
        bytes.
        """
        dtype = DTYPES.get(datatype)
        if dtype is None:
            self._unfit(name, datatype, shape, f"invalid datatype for input {name}")
            return None
        count = element_count(name, shape)
        expected = count * dtype.itemsize
        if not dtype.hasobject and expected != size:
            self._unfit(
                name,
                datatype,
                shape,
                f"{self._prefix}input byte size mismatch for input '{name}' for model '{self._model}'. "
                f"Expected {expected}, got {size}",
            )
            return None
        return count

    def array(self, name: str, datatype: str, shape: tuple[int, ...], data: Data) -> Array:
        """Return the same as an array: a copy only of unaligned bytes, and of BYTES."""
        return self.tensor(name, datatype, shape, data).array

    def strings(self, name: str, shape: tuple[int, ...], elements: list[bytes]) -> Array:
        """Return a BYTES array of separated elements; an empty one unless the shape has as many."""
        count = element_count(name, shape)
        if len(elements) == count:
            return string_array(elements, shape)
        return self._miscount(name, shape, len(elements), count)

    def _unfit(self, name: str, datatype: str, shape: tuple[int, ...], fault: str) -> Array:
        self._faults[name] = fault
        self._specs[name] = (datatype_name(datatype), shape)
        return _NOTHING

    def _miscount(self, name: str, shape: tuple[int, ...], present: int, count: int) -> Array:
        of = f"for inference input '{name}' for model '{self._model}'"
        fault = (
            f"unexpected number of string elements {count + 1} {of}, expecting {count}"
            if present > count
            else f"expected {count} string elements {of}, got {present}"
        )
        return self._unfit(name, "BYTES", shape, self._prefix + fault)

    def check(self, request: InferRequest) -> None:
        """Raise FaultyInputsError if data of the request does not fit."""
        if not self._faults:
            return
        inputs = {name: (datatype_name(tensor.datatype), tensor.shape) for name, tensor in request.inputs.items()}
        inputs |= self._specs
        name = next(name for name in input_order(inputs) if name in self._faults)
        raise FaultyInputsError(self._faults[name], self._faults, inputs, request.requested_outputs, self._prefix)

    def _strings(self, name: str, shape: tuple[int, ...], count: int, data: bytes | memoryview) -> Array:
        try:
            elements = split_strings(data, most=count)
        except StringsError as error:
            # Triton counts the one that is cut short, too, and reports a wrong count first.
            if error.length is not None and error.count + 1 != count:
                return self._miscount(name, shape, error.count + 1, count)
            return self._unfit(name, "BYTES", shape, self._cut_short(name, error))
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


def datatype_name(datatype: str) -> str:
    """Return a datatype as Triton's messages name it: one that it does not know is <invalid>."""
    return datatype if datatype in DTYPES else "<invalid>"
