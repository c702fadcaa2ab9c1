"""Decoding of a request's JSON into a declared type, with OpenAI's words for everything that is wrong with it."""

import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from argosy_runtime.tensors import Data

from .errors import ApiError, invalid
from .surrogates import lone_surrogate

Declared = TypeVar("Declared", bound=msgspec.Struct)

_TYPES: Final = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_EXPECTED: Final = re.compile(r"Expected `([a-z |]+)`(?:, got `(\w+)`)?$")
_RANGE: Final = re.compile(r"Expected `(int|float)` (>=|<=|>|<) (\S+)$")
_LENGTH: Final = re.compile(r"Expected `(str|array|object)` of length (>=|<=) (\d+)$")
_PATTERN: Final = re.compile(r"Expected `str` matching regex (.*)$")
_MISSING: Final = re.compile(r"Object missing required field `(.*)`$")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`$")
_VALUE: Final = re.compile(r"Invalid (?:enum )?value (.*)$")
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def decode(decoder: "msgspec.json.Decoder[Declared]", body: Data) -> Declared:
    """Return the request in a body. Raises ApiError."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), decoder.type) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error, body) from None


def _unreadable(error: Exception, body: Data) -> ApiError:
    """Return the error of a body that is no JSON."""
    half = lone_surrogate(body)
    if half is None:
        message = f"We could not parse the JSON body of your request: {str(error).rstrip('.')}."
        return invalid(message, code="invalid_json")
    where = f"'{half.path}' has" if half.path else "it has"
    message = (
        f"We could not parse the JSON body of your request: {where} {half.escape}, half of a surrogate pair, which is "
        "no character. Send the whole pair, or the character itself."
    )
    return invalid(message, half.path or None, "invalid_json")


def _invalid(message: str, declared: Any) -> ApiError:
    what, _, where = message.rpartition(" - at `") if " - at `" in message else (message, "", "")
    path = where.rstrip("`").removeprefix("$").removeprefix(".").removesuffix("[...]")
    if match := _MISSING.match(what):
        name = _joined(path, match[1])
        return invalid(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    if match := _UNKNOWN.match(what):
        name = _joined(path, match[1])
        return invalid(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    if match := _VALUE.match(what):
        values = ", ".join(f"'{value}'" for value in _supported(inspect.type_info(declared), path))
        message = f"Invalid value for '{path}': {match[1]}." + (f" Supported values are: {values}." if values else "")
        return invalid(message, path, "invalid_value")
    if match := _EXPECTED.match(what):
        return _wrong_type(path, match[1], match[2])
    return _out_of_range(path, what)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _wrong_type(path: str, expected: str, got: str | None) -> ApiError:
    names = [_TYPES.get(name, name) for name in expected.split(" | ") if name != "null"]
    alternatives = " or ".join(names)
    received = f", but got {_TYPES.get(got, got)} instead" if got else ""
    if not path:
        return invalid(f"The body of the request must be {alternatives}{received}.", code="invalid_type")
    return invalid(f"Invalid type for '{path}': expected {alternatives}{received}.", path, "invalid_type")


def _out_of_range(path: str, what: str) -> ApiError:
    if match := _RANGE.match(what):
        kind = "integer" if match[1] == "int" else "decimal"
        low = match[2] in (">=", ">")
        limit = match[3].removesuffix(".0")
        side = "below minimum" if low else "above maximum"
        message = f"Invalid '{path}': {kind} {side} value. Expected a value {match[2]} {limit}."
        return invalid(message, path, f"{kind}_{'below_min' if low else 'above_max'}_value")
    if match := _LENGTH.match(what):
        kind = {"str": "string", "array": "array", "object": "object"}[match[1]]
        low = match[2] == ">="
        if low and match[1] == "array" and match[3] == "1":
            return invalid(
                f"Invalid '{path}': empty array. Expected an array with minimum length 1.", path, "empty_array"
            )
        message = f"Invalid '{path}': {kind} too {'short' if low else 'long'}. Expected a length {match[2]} {match[3]}."
        return invalid(message, path, f"{kind}_{'below_min' if low else 'above_max'}_length")
    if match := _PATTERN.match(what):
        return invalid(f"Invalid '{path}': string does not match pattern {match[1]}.", path, "invalid_value")
    return invalid(f"Invalid '{path}': {what}." if path else f"{what}.", path or None, "invalid_value")


def _supported(declared: inspect.Type, path: str) -> list[str]:
    """Return the values that the place at `path` may have, as its type declares them."""
    types = [declared]
    for name, _ in _STEP.findall(path):
        types = [inner for at in types for inner in (_fields(at, name) if name else _elements(at))]
    values = (value for at in types for alternative in _alternatives(at) for value in _values(alternative))
    return list(dict.fromkeys(values))


def _alternatives(declared: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(declared, inspect.UnionType):
        yield from declared.types
    else:
        yield declared


def _fields(declared: inspect.Type, name: str) -> Iterator[inspect.Type]:
    for alternative in _alternatives(declared):
        if isinstance(alternative, inspect.StructType):
            if alternative.tag_field == name and isinstance(alternative.tag, str):
                yield inspect.LiteralType((alternative.tag,))
            yield from (field.type for field in alternative.fields if field.encode_name == name)


def _elements(declared: inspect.Type) -> Iterator[inspect.Type]:
    for alternative in _alternatives(declared):
        if isinstance(alternative, inspect.ListType):
            yield alternative.item_type


def _values(declared: inspect.Type) -> tuple[str, ...]:
    return tuple(str(value) for value in declared.values) if isinstance(declared, inspect.LiteralType) else ()
