"""The parameters of gRPC requests and responses."""

from collections.abc import Mapping

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import invalid
from argosy_runtime.messages import InferRequest, Parameter

EMPTY_FINAL = "triton_enable_empty_final_response"
FINAL_RESPONSE = "triton_final_response"
_CUSTOM = ("int64_param", "bool_param", "string_param", "double_param")


def apply(parameters: Mapping[str, pb.InferParameter], request: InferRequest) -> bool:
    """Set a request's parameters. Return whether the client requests empty final responses."""
    wants_empty_final = False
    for name, parameter in parameters.items():
        kind = parameter.WhichOneof("parameter_choice")
        if name in _RESERVED:
            accepted, expected, field = _RESERVED[name]
            if kind not in accepted:
                raise invalid(f"invalid value type for '{name}' parameter, expected {expected}.")
            setattr(request, field, _steering(name, getattr(parameter, kind)))
        elif name == EMPTY_FINAL:
            if kind != "bool_param":
                raise invalid(f"invalid value type for '{name}' parameter, expected bool_param.")
            wants_empty_final = parameter.bool_param
        elif name.startswith("triton_"):
            raise invalid(
                "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following "
                "keys "
                f"starting with 'triton_' are allowed: {EMPTY_FINAL}"
            )
        elif kind in _CUSTOM:
            request.parameters[name] = getattr(parameter, kind)
        else:
            raise invalid(
                f"invalid value type for '{name}' parameter, expected int64_param, bool_param, or string_param."
            )
    return wants_empty_final


_RESERVED: dict[str, tuple[tuple[str, ...], str, str]] = {
    "sequence_id": (("int64_param", "string_param"), "int64_param or string_param", "sequence_id"),
    "sequence_start": (("bool_param",), "bool_param", "sequence_start"),
    "sequence_end": (("bool_param",), "bool_param", "sequence_end"),
    "priority": (("int64_param", "uint64_param"), "int64_param or uint64_param", "priority"),
    "timeout": (("int64_param",), "int64_param", "timeout_us"),
}


def _steering(name: str, value: Parameter) -> Parameter:
    """Return an unsigned value: of a negative identifier or time the same 64 bits. Raises for a negative priority."""
    if isinstance(value, int) and value < 0:
        if name == "priority":
            raise invalid("invalid value for 'priority', expected value >= 0.")
        return value + 2**64
    return value


def put(parameters: Mapping[str, Parameter], into: Mapping[str, pb.InferParameter]) -> None:
    """Write a response's parameters into its message."""
    for name, value in parameters.items():
        target = into[name]
        if isinstance(value, bool):
            target.bool_param = value
        elif isinstance(value, int):
            target.int64_param = value
        elif isinstance(value, float):
            target.double_param = value
        else:
            target.string_param = value
