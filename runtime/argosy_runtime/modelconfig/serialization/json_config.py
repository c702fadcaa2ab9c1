"""Triton's JSON form of a ModelConfig, as `GET /v2/models/m/config` answers it and a load override brings it.

Out: snake_case names in the schema's order, defaults printed, unset messages and oneofs left out, enums by
name, 64-bit integers as numbers. In: the same, and camelCase names, integers as strings, enums in any case.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import ConfigError

from .fields import field_names, hint, is_repeated, map_value, value_names

Json = Any

_YOUNGER = frozenset({"max_inflight_requests"})
"""Fields that Triton 2.51, whose form this is, does not know yet: printed only where they say something."""


def to_json(config: ModelConfig) -> dict[str, Json]:
    """Return the configuration as plain dicts, lists, strings and numbers, ready for a JSON encoder."""
    return _message_to_json(config)


def _message_to_json(message: Message) -> dict[str, Json]:
    return {
        field.name: _field_to_json(field, getattr(message, field.name))
        for field in _fields(message)
        if _is_printed(field, message)
    }


def _is_printed(field: FieldDescriptor, message: Message) -> bool:
    if field.has_presence:
        return message.HasField(field.name)
    return field.name not in _YOUNGER or bool(getattr(message, field.name))


def _fields(message: Message) -> Sequence[FieldDescriptor]:
    descriptor: Any = message.DESCRIPTOR
    return tuple(descriptor.fields)


def _field_to_json(field: FieldDescriptor, value: Json) -> Json:
    entry = map_value(field)
    if entry is not None:
        return {str(key): _scalar_to_json(entry, value[key]) for key in sorted(value)}
    if is_repeated(field):
        return [_scalar_to_json(field, item) for item in value]
    return _scalar_to_json(field, value)


def _scalar_to_json(field: FieldDescriptor, value: Json) -> Json:
    if field.message_type is not None:
        return _message_to_json(value)
    if field.enum_type is not None:
        number = field.enum_type.values_by_number.get(value)
        return number.name if number is not None else value
    if isinstance(value, float):
        return _float_to_json(value, field.type == FieldDescriptor.TYPE_FLOAT)
    return value


def _float_to_json(value: float, is_single: bool) -> float | str:
    if not math.isfinite(value):
        # JSON has no such numbers; protobuf writes and reads them as strings.
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    # The shortest decimal that reads back as the same 32-bit value: 0.1, not 0.10000000149.
    return float(str(np.float32(value))) if is_single else value


def parse_json(text: str) -> ModelConfig:
    """Read the JSON form. Raises ConfigError naming the field and, if unknown, the nearest known one."""
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(_printable(f"failed to parse model configuration JSON: {reason}")) from None
    prepared = _prepare_message(value, ModelConfig.DESCRIPTOR, "")
    try:
        return json_format.ParseDict(prepared, ModelConfig())
    except (json_format.ParseError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(_printable(f"failed to parse model configuration JSON: {error}")) from None


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    seen: dict[str, Json] = {}
    for key, value in pairs:
        if key in seen:
            raise ConfigError(_printable(f"field '{key}' is given more than once"))
        seen[key] = value
    return seen


def _fail(path: str, message: str) -> ConfigError:
    return ConfigError(_printable(f"failed to parse model configuration JSON: {path or 'the document'}: {message}"))


def _printable(message: str) -> str:
    """Return a message with halves of surrogate pairs, which JSON may name, as escapes."""
    return message.encode("utf-8", "backslashreplace").decode()


def _prepare_message(value: Json, message: Descriptor, path: str) -> dict[str, Json]:
    """Check names and nesting with full paths; spell names and enums as the protobuf reader expects them."""
    if not isinstance(value, Mapping):
        raise _fail(path, f"expected an object, got {_kind(value)}")
    prepared: dict[str, Json] = {}
    for key, item in value.items():
        # Protobuf cannot look up a key that is no UTF-8.
        field = (
            (message.fields_by_name.get(key) or message.fields_by_camelcase_name.get(key)) if key.isascii() else None
        )
        where = f"{path}.{key}" if path else key
        if field is None:
            raise _fail(where, f'no field named "{key}" in {message.name}.{hint(key, field_names(message))}')
        if field.name in prepared:
            raise _fail(where, f"field '{field.name}' is given more than once")
        if item is not None:
            prepared[field.name] = _prepare_field(item, field, where)
    return prepared


def _prepare_field(value: Json, field: FieldDescriptor, path: str) -> Json:
    entry = map_value(field)
    if entry is not None:
        if not isinstance(value, Mapping):
            raise _fail(path, f"expected an object, got {_kind(value)}")
        return {key: _prepare_value(item, entry, f"{path}[{json.dumps(key)}]") for key, item in value.items()}
    if is_repeated(field):
        if not isinstance(value, list):
            raise _fail(path, f"expected an array, got {_kind(value)}")
        return [_prepare_value(item, field, f"{path}[{index}]") for index, item in enumerate(value)]
    return _prepare_value(value, field, path)


def _prepare_value(value: Json, field: FieldDescriptor, path: str) -> Json:
    if field.message_type is not None:
        return _prepare_message(value, field.message_type, path)
    if value is None or isinstance(value, list | Mapping):
        raise _fail(path, f"expected a single value, got {_kind(value)}")
    if field.enum_type is not None and isinstance(value, str):
        return _prepare_enum(value, field.enum_type, path)
    return value


def _prepare_enum(value: str, enum: EnumDescriptor, path: str) -> str:
    names = value_names(enum)
    for name in names:
        if name.casefold() == value.casefold():
            return name
    raise _fail(path, f'no value named "{value}" in {enum.name}.{hint(value, names)}')


def _kind(value: Json) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")
