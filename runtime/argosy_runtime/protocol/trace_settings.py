"""The trace extension's messages, over HTTP and gRPC: what a client changes, and the settings as it sees them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import ServingError, invalid, unsupported
from argosy_runtime.traces import TraceLevel

from .json.text import typed

Settings = Mapping[str, str | Sequence[str]]
"""All settings of a model by their names; only `trace_level` has several values."""

_FIELDS: Final = {"trace_rate": "rate", "trace_count": "count", "log_frequency": "log_frequency"}
_INT: Final = re.compile(r"\s*([+-]?\d+)", re.ASCII)
_INT32: Final = 2**31
_UINT32: Final = 2**32
_NO_LIMIT: Final = -1
_MOST_DIGITS: Final = 1000


def changes_of_json(document: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the changes that a JSON object asks for; null takes a setting back. Raises ServingError."""
    _refuse_file(document)
    changes: dict[str, int | None] = {}
    if "trace_level" in document:
        levels = document["trace_level"]
        if levels is None:
            changes["level"] = None
        else:
            changes |= _level([typed(level, str, "") for level in typed(levels, list, "")])
    for name, field in _FIELDS.items():
        if name in document:
            text = document[name]
            changes[field] = None if text is None else _number(name, typed(text, str, ""), ", got:")
    return changes


def changes_of_grpc(settings: Mapping[str, pb.TraceSettingRequest.SettingValue]) -> dict[str, int | None]:
    """Return the changes that a message asks for; no value takes a setting back. Raises ServingError."""
    _refuse_file(settings)
    changes: dict[str, int | None] = {}
    if "trace_level" in settings:
        levels = settings["trace_level"].value
        changes |= _level(levels) if levels else {"level": None}
    for name, field in _FIELDS.items():
        if name in settings:
            values = settings[name].value
            if len(values) > 1:
                raise invalid(f"expect only 1 value for '{name}'")
            changes[field] = _number(name, values[0], ", got: ") if values else None
    return changes


def settings_message(settings: Settings) -> pb.TraceSettingResponse:
    """Return the settings as gRPC has them."""
    response = pb.TraceSettingResponse()
    for name, value in settings.items():
        response.settings[name].value.extend([value] if isinstance(value, str) else value)
    return response


def _refuse_file(settings: Mapping[str, object]) -> None:
    if "trace_file" in settings:
        raise unsupported("trace file location can not be updated through network protocol")


def _level(names: Sequence[str]) -> dict[str, int | None]:
    """Return the level of these names; unknown ones count for nothing."""
    if "OFF" in names:
        if len(names) > 1:
            raise invalid("Expect only one trace level 'OFF' is specified")
        return {"level": TraceLevel.OFF}
    level = TraceLevel.OFF
    for name in names:
        if name in ("TIMESTAMPS", "TENSORS"):
            level |= TraceLevel[name]
    return {"level": level} if level else {}


def _number(name: str, text: str, got: str) -> int:
    """Return a number as C++ reads it: behind blanks, up to the first character that is no digit."""
    match = _INT.match(text)
    if match is None:
        raise invalid(f"Unable to parse '{name}', got: {text}")
    # Python refuses to read numbers of thousands of digits.
    number = int(match[1]) if len(match[1]) < _MOST_DIGITS else _INT32
    is_count = name == "trace_count"
    if not -_INT32 <= number < _INT32:
        raise _out_of_range(name, text, (_NO_LIMIT, _INT32 - 1) if is_count else (0, _UINT32 - 1))
    if is_count:
        if number < _NO_LIMIT:
            raise invalid(f"Unable to parse '{name}'. Expecting value >= {_NO_LIMIT}{got}{text}")
        return number
    return number % _UINT32


def _out_of_range(name: str, text: str, limits: tuple[int, int]) -> ServingError:
    low, high = limits
    return invalid(f"Unable to parse '{name}', value is out of range [ {low}, {high} ], got: {text}")
