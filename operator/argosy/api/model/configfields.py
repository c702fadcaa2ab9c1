"""Checks the free `config` map against ModelConfig's protobuf schema: every field, with its path.

Values take the JSON form that `config.pbtxt` fields have in Triton's own APIs: snake_case names, enum values
by name, lists for repeated fields, maps for maps.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from pydantic import Field
from tritonclient.grpc.model_config_pb2 import DESCRIPTOR

from argosy.api.values.base import Fault
from argosy.api.values.storage import RELATIVE_PATH
from argosy_common.wording import did_you_mean
from argosy_runtime.modelconfig.modelfiles import BY_COMPUTE_CAPABILITY

ConfigFields = Annotated[
    dict[str, Any],
    Field(
        description="Other fields of Triton's ModelConfig, in snake_case, checked against its schema.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    ),
]
"""The free map of a model or an ensemble."""
GOVERNED = {
    "name": "metadata.name",
    "platform": "spec.modelFormat.name",
    "backend": "spec.modelFormat.name",
    "version_policy": "spec.versionPolicy",
    "max_batch_size": "spec.maxBatchSize",
    "input": "spec.inputs",
    "output": "spec.outputs",
    "dynamic_batching": "spec.batching",
    "sequence_batching": "spec.sequence",
    "ensemble_scheduling": "an Ensemble's spec.steps",
    "instance_group": "spec.instances or spec.instanceGroups, spec.footprint and spec.parallelism",
}
"""ModelConfig's fields that a field of the spec already decides."""

_NOT_AN_ENSEMBLES = "its steps' models, which alone are executed"
ENSEMBLE_GOVERNED = {
    "name": "metadata.name",
    "platform": "spec.steps",
    "backend": "spec.steps",
    "version_policy": "spec.version",
    "max_batch_size": "spec.maxBatchSize",
    "input": "spec.inputs",
    "output": "spec.outputs",
    "ensemble_scheduling": "spec.steps and spec.maxInflightRequests",
    **dict.fromkeys(
        (
            "dynamic_batching",
            "sequence_batching",
            "instance_group",
            "optimization",
            "model_warmup",
            "cc_model_filenames",
            "default_model_filename",
            "model_operations",
            "batch_input",
            "batch_output",
        ),
        _NOT_AN_ENSEMBLES,
    ),
}
"""The same of an ensemble, which also has nothing of what says how a model is executed."""

OWN_FILES: Final = "cc_model_filenames"
"""The field that names a file for each compute capability, where no engine is built."""

Path = tuple[str | int, ...]
_FILE_FIELDS = frozenset({"default_model_filename", "input_data_file", "data_file", "label_filename"})
"""Fields of ModelConfig and of its parts that name a file."""
_RELATIVE = re.compile(RELATIVE_PATH)
_CAPABILITY = re.compile(r"[1-9][0-9]*\.[0-9]")
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def check_config(config: dict[str, Any], decided: Mapping[str, str] = GOVERNED) -> list[Fault]:
    """Return the errors of `config`, with their paths in it.

    `decided` are the fields that other fields decide, with the names of those.
    """
    model_config = DESCRIPTOR.message_types_by_name["ModelConfig"]
    governed = [
        Fault(f"is decided by {decided[name]}; set that instead", (name,)) for name in config if name in decided
    ]
    free = {name: value for name, value in config.items() if name not in decided}
    return [*governed, *_message(model_config, free, ()), *_files(free, ())]


def check_own_files(config: dict[str, Any], backend: str) -> Iterator[Fault]:
    """Yield the errors of `cc_model_filenames`, whose keys must be compute capabilities of GPUs."""
    files = config.get(OWN_FILES)
    if not isinstance(files, dict):
        return
    if files and backend not in BY_COMPUTE_CAPABILITY:
        yield Fault(f"backend {backend} opens one file on every GPU; leave it out", (OWN_FILES,))
    for key, name in files.items():
        if not _CAPABILITY.fullmatch(str(key)):
            yield Fault("is no compute capability; write major.minor, such as 8.0 or 12.0", (OWN_FILES, str(key)))
        elif isinstance(name, str) and not (name.strip() and _RELATIVE.fullmatch(name)):
            yield Fault(f"expected a file of the version's folder; found {name!r}", (OWN_FILES, str(key)))


def _files(value: Any, path: Path) -> Iterator[Fault]:
    """Yield an error for each file name, at any depth, that may lead out of the model's folder."""
    entries: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else entries:
        if key in _FILE_FIELDS and isinstance(inner, str) and not _RELATIVE.fullmatch(inner):
            yield Fault(f"expected a file in the model's own folder; found {inner!r}", (*path, key))
        yield from _files(inner, (*path, key))


def _message(schema: Descriptor, value: Any, path: Path) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield _expected("a map of fields", value, path)
        return
    for name, inner in value.items():
        field = schema.fields_by_name.get(name)
        if field is None:
            yield Fault(_unknown(name, schema), (*path, name))
        else:
            yield from _field(field, inner, (*path, name))
    yield from _check_oneofs(schema, value, path)


def _check_oneofs(schema: Descriptor, value: dict[str, Any], path: Path) -> Iterator[Fault]:
    for choice in schema.oneofs:
        present = [field.name for field in choice.fields if field.name in value]
        if len(present) > 1:
            yield Fault(f"set only one of {', '.join(present)}", (*path, present[1]))


def _unknown(name: str, schema: Descriptor) -> str:
    names = [field for field in schema.fields_by_name if schema.name != "ModelConfig" or field not in GOVERNED]
    return f"unknown field of {schema.name}{did_you_mean(name, names)}"


def _field(field: FieldDescriptor, value: Any, path: Path) -> Iterator[Fault]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        yield from _map(kind, value, path)
    elif field.is_repeated:
        yield from _list(field, value, path)
    else:
        yield from _single(field, value, path)


def _map(entry: Descriptor, value: Any, path: Path) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield _expected("a map", value, path)
        return
    for key, inner in value.items():
        yield from _single(entry.fields_by_name["value"], inner, (*path, key))


def _list(field: FieldDescriptor, value: Any, path: Path) -> Iterator[Fault]:
    if not isinstance(value, list | tuple):
        yield _expected("a list", value, path)
        return
    for index, inner in enumerate(value):
        yield from _single(field, inner, (*path, index))


def _single(field: FieldDescriptor, value: Any, path: Path) -> Iterator[Fault]:
    if field.message_type is not None:
        yield from _message(field.message_type, value, path)
    elif field.enum_type is not None:
        yield from _enum(field.enum_type, value, path)
    else:
        yield from _scalar(field, value, path)


def _enum(kind: EnumDescriptor, value: Any, path: Path) -> Iterator[Fault]:
    names = list(kind.values_by_name)
    if not isinstance(value, str) or value not in names:
        yield Fault(f"{value!r} is no {kind.name}{did_you_mean(str(value), names)}", path)


def _scalar(field: FieldDescriptor, value: Any, path: Path) -> Iterator[Fault]:
    bounds = _INTEGERS.get(field.cpp_type)
    if bounds is not None:
        yield from _integer(bounds, value, path)
        return
    description, fits = _SCALARS[field.cpp_type]
    if not fits(value):
        yield _expected(description, value, path)


def _integer(bounds: tuple[int, int], value: Any, path: Path) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield _expected("a whole number", value, path)
    elif not bounds[0] <= value <= bounds[1]:
        yield Fault(f"must be from {bounds[0]} to {bounds[1]}; found {value}", path)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SCALARS: dict[int, tuple[str, Callable[[Any], bool]]] = {
    FieldDescriptor.CPPTYPE_BOOL: ("true or false", lambda value: isinstance(value, bool)),
    FieldDescriptor.CPPTYPE_STRING: ("text", lambda value: isinstance(value, str)),
    FieldDescriptor.CPPTYPE_FLOAT: ("a number", _is_number),
    FieldDescriptor.CPPTYPE_DOUBLE: ("a number", _is_number),
}


def _expected(description: str, value: Any, path: Path) -> Fault:
    return Fault(f"expected {description}; found {value!r}", path)
