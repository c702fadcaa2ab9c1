"""Names of the schema's fields, and the nearest one to a name that does not exist."""

import difflib
from collections.abc import Iterable
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from tritonclient.grpc.model_config_pb2 import ModelConfig

# Names of other frameworks that no similarity of letters would find.
_FOREIGN = {
    "type_float": "TYPE_FP32",
    "type_float16": "TYPE_FP16",
    "type_float32": "TYPE_FP32",
    "type_float64": "TYPE_FP64",
    "type_bfloat16": "TYPE_BF16",
    "type_half": "TYPE_FP16",
    "type_double": "TYPE_FP64",
    "type_int": "TYPE_INT32",
    "type_long": "TYPE_INT64",
    "type_bytes": "TYPE_STRING",
    "bytes": "TYPE_STRING",
    "float": "TYPE_FP32",
}


def hint(unknown: str, names: Iterable[str]) -> str:
    """Return ' Did you mean "name"?' or '' where nothing is near."""
    candidates = list(names)
    foreign = _FOREIGN.get(unknown.casefold())
    if foreign in candidates:
        return f' Did you mean "{foreign}"?'
    by_folded = {name.casefold(): name for name in candidates}
    near = difflib.get_close_matches(unknown.casefold(), list(by_folded), n=1, cutoff=0.5)
    return f' Did you mean "{by_folded[near[0]]}"?' if near else ""


def field_names(message: Descriptor) -> list[str]:
    """Return the fields of a message, as config.pbtxt spells them."""
    return [field.name for field in message.fields]


def value_names(enum: EnumDescriptor) -> list[str]:
    """Return the values of an enum, by name."""
    return [value.name for value in enum.values]


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a field is a list or a map."""
    # Named so from protobuf 6.31 on. A model's own environment may have an older one, whose name newer ones lack.
    described: Any = field
    if hasattr(described, "is_repeated"):
        return bool(described.is_repeated)
    return bool(described.label == described.LABEL_REPEATED)


def map_value(field: FieldDescriptor) -> FieldDescriptor | None:
    """Return the value's field of a map<key, value>; None where the field is no map."""
    if field.message_type is None or not field.message_type.GetOptions().map_entry:
        return None
    value: FieldDescriptor = field.message_type.fields_by_name["value"]
    return value


def _collect(message: Descriptor, messages: dict[str, Descriptor], enums: dict[str, EnumDescriptor]) -> None:
    if message.full_name in messages:
        return
    messages[message.full_name] = message
    for field in message.fields:
        if field.enum_type is not None:
            enums[field.enum_type.full_name] = field.enum_type
        if field.message_type is not None:
            _collect(field.message_type, messages, enums)


MESSAGES: dict[str, Descriptor] = {}
ENUMS: dict[str, EnumDescriptor] = {}
_collect(ModelConfig.DESCRIPTOR, MESSAGES, ENUMS)
