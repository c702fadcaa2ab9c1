"""The `parameters` of a JSON inference request."""

from collections.abc import Callable
from typing import Any

from argosy_runtime.errors import internal, invalid
from argosy_runtime.messages import InferRequest, Parameter

from .text import typed, unsigned


def apply(parameters: Any, request: InferRequest) -> bool:
    """Set a request's parameters. Return `binary_data_output`.

    Reserved names set fields of the request, every `triton_*` is refused, all others are the model's own.
    """
    if type(parameters) is not dict:
        raise internal("failed to get request params.: attempt to get members for non-object")
    binary_data_output = False
    for name, value in parameters.items():
        reserved = _RESERVED.get(name)
        if reserved is not None:
            reserved(request, value)
        elif name == "binary_data_output":
            binary_data_output = typed(value, bool, "Unable to parse 'binary_data_output'")
        elif name.startswith("triton_"):
            raise invalid(
                "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified."
            )
        else:
            request.parameters[name] = custom(name, value)
    return binary_data_output


def custom(name: str, value: Any) -> Parameter:
    """Return a parameter of the model's own: string, integer, boolean or double."""
    if isinstance(value, str | int | float):
        return value
    raise invalid(f"parameter '{name}' has invalid type. It should be either 'int', 'bool', or 'string'.")


def _sequence_id(request: InferRequest, value: Any) -> None:
    if type(value) is int and 0 <= value < 2**64:
        request.sequence_id = value
    else:
        request.sequence_id = typed(value, str, "Unable to parse 'sequence_id'")


def _sequence_start(request: InferRequest, value: Any) -> None:
    request.sequence_start = typed(value, bool, "Unable to parse 'sequence_start'")


def _sequence_end(request: InferRequest, value: Any) -> None:
    request.sequence_end = typed(value, bool, "Unable to parse 'sequence_end'")


def _priority(request: InferRequest, value: Any) -> None:
    request.priority = unsigned(value, "Unable to parse 'priority'")


def _timeout(request: InferRequest, value: Any) -> None:
    request.timeout_us = unsigned(value, "Unable to parse 'timeout'")


_RESERVED: dict[str, Callable[[InferRequest, Any], None]] = {
    "sequence_id": _sequence_id,
    "sequence_start": _sequence_start,
    "sequence_end": _sequence_end,
    "priority": _priority,
    "timeout": _timeout,
}
