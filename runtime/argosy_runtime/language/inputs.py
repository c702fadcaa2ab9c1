"""Single values of a request's input tensors."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from argosy_runtime.errors import invalid
from argosy_runtime.messages import Array, InferRequest
from argosy_runtime.tensors import string_elements

T = TypeVar("T")


def scalar(request: InferRequest, name: str, kind: Callable[[Array], T]) -> T | None:
    """Return the only element of an input, None without the input. Raises ServingError for another number of them."""
    tensor = request.inputs.get(name)
    if tensor is None:
        return None
    array = tensor.array
    if array.size != 1:
        raise invalid(f"input '{name}' has shape {list(array.shape)}, expected one element")
    return kind(array)


def flag(request: InferRequest, name: str) -> bool | None:
    """Return a BOOL input."""
    return scalar(request, name, lambda array: bool(array.reshape(-1)[0]))


def integer(request: InferRequest, name: str) -> int | None:
    """Return an integer input."""
    return scalar(request, name, lambda array: int(array.reshape(-1)[0]))


def number(request: InferRequest, name: str) -> float | None:
    """Return a floating-point input as the decimal number that it was written as, as far as its type knows."""
    return scalar(request, name, lambda array: float(str(array.reshape(-1)[0])))


def data(request: InferRequest, name: str) -> bytes | None:
    """Return a BYTES input."""
    return scalar(request, name, lambda array: string_elements(array)[0])


def text(request: InferRequest, name: str) -> str | None:
    """Return a BYTES input as text. Raises ServingError where it is not UTF-8."""
    value = data(request, name)
    return None if value is None else decoded(name, value)


def texts(request: InferRequest, name: str) -> list[str] | None:
    """Return all elements of a BYTES input as texts that are not empty, None without the input."""
    tensor = request.inputs.get(name)
    if tensor is None:
        return None
    return [decoded(name, element) for element in string_elements(tensor.array) if element]


def token_ids(request: InferRequest, name: str) -> list[int] | None:
    """Return an integer input as a list. Raises ServingError where it is no vector of integers."""
    tensor = request.inputs.get(name)
    if tensor is None:
        return None
    array = np.asarray(tensor.array)
    if array.dtype.kind not in "iu":
        raise invalid(f"input '{name}' has datatype {tensor.datatype}, expected integers")
    return [int(token) for token in array.reshape(-1).tolist()]


def decoded(name: str, value: bytes) -> str:
    """Return text. Raises ServingError where it is not UTF-8."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid(f"input '{name}' is not UTF-8: {error}") from error
