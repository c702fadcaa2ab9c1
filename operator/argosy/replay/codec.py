"""Snapshots and outcomes as plain JSON values, by cattrs; resources and statuses by pydantic.

What a value has as default is left out, so that a document shows what the round saw. Mappings whose keys are tuples are
lists of pairs, and sets are sorted lists, so that equal values have equal documents. Durations are microseconds.
"""

import json
from collections.abc import Mapping, Set
from datetime import timedelta
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from cattrs import Converter, transform_error
from cattrs.preconf.json import make_converter
from pydantic import BaseModel, ValidationError

from argosy.autoscaling.metrics.names import Failure
from argosy.snapshot import FleetSnapshot

KIND = "kind"
"""The field that names the class of a value where a field may have one of several."""


class DocumentError(ValueError):
    """A document is no snapshot of this release; the message names the field."""


def encoded(value: object) -> Any:
    """Return a snapshot, an outcome or a part of one as plain JSON values, as they are read again."""
    return json.loads(json.dumps(converter().unstructure(value)))


def decoded_snapshot(document: Any) -> FleetSnapshot:
    """Return the snapshot in a document. Raises DocumentError."""
    try:
        return converter().structure(document, FleetSnapshot)
    except Exception as error:
        faults = "; ".join(transform_error(error, "snapshot", format_exception=_fault)[:5])
        raise DocumentError(faults or str(error)) from error


@cache
def converter() -> Converter:
    """Return the converter of all types that snapshots and outcomes are made of."""
    made = make_converter(omit_if_default=True, unstruct_collection_overrides={Set: _sorted})
    made.register_unstructure_hook(timedelta, lambda value: value // timedelta(microseconds=1))
    made.register_structure_hook(timedelta, lambda value, _: timedelta(microseconds=value))
    made.register_unstructure_hook(Failure, lambda value: value.name)
    made.register_structure_hook(Failure, lambda value, _: Failure[value])
    made.register_unstructure_hook_func(_has_tuple_keys, lambda value: _pairs(made, value))
    made.register_structure_hook_func(_has_tuple_keys, lambda value, kind: _mapping(made, value, kind))
    made.register_unstructure_hook_func(_is_model, _model_document)
    made.register_structure_hook_func(_is_model, lambda value, kind: kind.model_validate(value, by_alias=True))
    made.register_unstructure_hook_func(_is_choice, _named_document)
    made.register_structure_hook_func(_is_choice, _named_value)
    made.register_unstructure_hook_func(_is_struct, msgspec.to_builtins)
    made.register_structure_hook_func(_is_struct, lambda value, kind: msgspec.convert(value, kind))
    return made


def _fault(error: BaseException, kind: type | None) -> str:
    if isinstance(error, KeyError):
        return f"is required: {error}"
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error) or f"is no {getattr(kind, '__name__', kind)}"


def _sorted(items: Any) -> list[Any]:
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def _is_mapping(kind: Any) -> bool:
    return isinstance(get_origin(kind), type) and issubclass(get_origin(kind), Mapping)


def _has_tuple_keys(kind: Any) -> bool:
    """Return whether a type is a mapping that JSON has no object for."""
    return _is_mapping(kind) and get_origin(get_args(kind)[0]) is tuple


def _pairs(made: Converter, value: Mapping[Any, Any]) -> list[Any]:
    return _sorted([made.unstructure(key), made.unstructure(item)] for key, item in value.items())


def _mapping(made: Converter, value: Any, kind: Any) -> dict[Any, Any]:
    keys, items = get_args(kind)
    return {made.structure(key, keys): made.structure(item, items) for key, item in value}


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_choice(kind: Any) -> bool:
    """Return whether a type is a union of pydantic models: resources or statuses of several kinds."""
    return get_origin(kind) in (Union, UnionType) and all(map(_is_model, get_args(kind)))


def _model_document(model: BaseModel) -> dict[str, Any]:
    """Return a resource or a status as it was declared: fields that were left out, or null, stay so."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


def _named_document(model: BaseModel) -> dict[str, Any]:
    return {KIND: type(model).__name__, **_model_document(model)}


def _named_value(value: Any, kind: Any) -> BaseModel:
    choices: dict[str, type[BaseModel]] = {choice.__name__: choice for choice in get_args(kind)}
    name = value.get(KIND) if isinstance(value, dict) else None
    if name not in choices:
        raise ValueError(f"{KIND} must be one of {', '.join(choices)}; found {name!r}")
    model = choices[name]
    fields = value if KIND in model.model_fields else {field: of for field, of in value.items() if field != KIND}
    return model.model_validate(fields, by_alias=True)
