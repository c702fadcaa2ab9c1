"""Log settings as their gRPC messages."""

from collections.abc import Mapping

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import invalid
from argosy_runtime.telemetry.log_settings import KINDS, Setting

_FIELDS: Mapping[type, tuple[str, str]] = {
    bool: ("bool_param", "boolean"),
    int: ("uint32_param", "int32"),
    str: ("string_param", "string"),
}
"""A setting's type → its field, and Triton's name of the type."""


def decode(request: pb.LogSettingsRequest) -> dict[str, Setting]:
    """Return the requested changes, those of unknown names too. Raises INVALID_ARG for a value of the wrong type."""
    changes: dict[str, Setting] = {}
    for name, value in request.settings.items():
        kind = value.WhichOneof("parameter_choice")
        field, called = _FIELDS[KINDS[name]] if name in KINDS else (kind, "")
        if kind != field:
            raise invalid(f"expect {called} for '{name}'")
        changes[name] = getattr(value, field) if field else ""
    return changes


def encode(settings: Mapping[str, Setting]) -> pb.LogSettingsResponse:
    """Return all settings."""
    response = pb.LogSettingsResponse()
    for name, value in settings.items():
        field, _ = _FIELDS[type(value)]
        setattr(response.settings[name], field, value)
    return response
