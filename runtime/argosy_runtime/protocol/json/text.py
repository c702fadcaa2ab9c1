"""JSON as Triton reads and writes it: NaN and Infinity bare, and errors worded like its parser's.

Reading wrongly typed JSON is an INTERNAL error, as it is there.
"""

import json
import re
from typing import Any, NoReturn

import orjson

from argosy_runtime.errors import ServingError, internal

from .nesting import shallow

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TRAILING_COMMA = re.compile(r",\s*")
_TOO_DEEP = re.compile("depth|[Rr]ecursion")
"""In messages of the parser, old and new."""
_PARSE_MESSAGES = (
    ("zero-length", "The document is empty."),
    ("data is empty", "The document is empty."),
    ("expected ':'", "Missing a colon after a name of object member."),
    ("after document", "The document root must not be followed by other values."),
    ("expected ',' or '}'", "Missing a comma or '}' after an object member."),
    ("expected ',' or ']'", "Missing a comma or ']' after an array element."),
    ("key", "Missing a name for object member."),
    ("UTF-8", "Invalid encoding in string."),
    ("control character", "Invalid escape character in string."),
    ("escaped sequence", "Invalid escape character in string."),
    ("low surrogate", "The surrogate pair in string is invalid."),
    ("after decimal point", "Miss fraction part in number."),
    ("after exponent sign", "Miss exponent in number."),
    ("infinity", "Number too big to be stored in double."),
)


def loads(text: bytes | memoryview) -> Any:
    """Parse a document. Raises INTERNAL where it is malformed or nested beyond reason, or INVALID_ARG."""
    return _loads(text, 0)


def _loads(text: bytes | memoryview, begin: int) -> Any:
    """Parse what follows the first `begin` bytes of a document, which are its byte order mark."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raw = bytes(text)
        if raw.startswith(_BYTE_ORDER_MARK):
            if begin:
                raise _malformed("", begin) from None
            return _loads(raw[len(_BYTE_ORDER_MARK) :], len(_BYTE_ORDER_MARK))
        if _TOO_DEEP.search(error.msg) and (shortened := shallow(raw)) is not None:
            return _loads(shortened, begin)
        if b"NaN" in raw or b"Infinity" in raw:
            return _loads_with_nan(raw, begin)
        raise _malformed(*_located(error, begin)) from None


def _located(error: json.JSONDecodeError, begin: int) -> tuple[str, int]:
    """Return the message of an error and its place in bytes.

    For Triton's parser that is behind a comma that is too many.
    """
    message, at = error.msg, error.pos
    if "trailing comma" in message and (comma := _TRAILING_COMMA.match(error.doc, at)) is not None:
        at = comma.end()
        message = "key" if error.doc.startswith("}", at) else ""
    return message, begin + len(error.doc[:at].encode("utf-8", "surrogatepass"))


def doubled_keys(text: bytes | memoryview, document: dict[str, Any]) -> frozenset[str]:
    """Return the keys that `document`, parsed from `text`, or an object in it, has twice. The last value counts.

    Only keys of the document and of its objects' first level are looked for, as they are written without escapes.
    """
    raw = bytes(text)
    keys = set(document).union(*[value for value in document.values() if type(value) is dict])
    if all(raw.count(b'"%b"' % key.encode("utf-8", "surrogatepass")) < 2 for key in keys):
        return frozenset()
    doubled: set[str] = set()

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            doubled.update(name for name in members if names.count(name) > 1)
        return members

    try:
        json.loads(raw, object_pairs_hook=collect)
    except RecursionError:
        json.loads(shallow(raw) or b"{}", object_pairs_hook=collect)
    return frozenset(doubled)


def _loads_with_nan(raw: bytes, begin: int) -> Any:
    try:
        document = json.loads(raw)
        # Halves of surrogate pairs, which the faster parser refuses, too.
        json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _malformed(*_located(error, begin)) from None
    except UnicodeEncodeError:
        raise _malformed("UTF-8", 0) from None
    except (RecursionError, UnicodeDecodeError):
        raise _malformed("Invalid value.", 0) from None
    except ValueError:
        # An integer of thousands of digits.
        raise _malformed("infinity", 0) from None
    return document


def _malformed(message: str, position: int) -> ServingError:
    wording = next((text for sign, text in _PARSE_MESSAGES if sign in message), "Invalid value.")
    return internal(f"failed to parse the request JSON buffer: {wording} at {position}")


def dumps(document: object, finite: bool = True) -> bytes:
    """Write compactly. Pass `finite=False` where a float may be NaN or infinite: they are then written bare.

    Strings made with `surrogateescape` come out as the bytes they were made from.
    """
    if finite:
        try:
            return orjson.dumps(document)
        except orjson.JSONEncodeError:
            pass
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogateescape")


def missing(key: str) -> str:
    """Return the message for a missing member."""
    return f"attempt to access non-existing object member '{key}'"


def member(holder: Any, key: str, kind: type, context: str) -> Any:
    """Return `holder[key]`, which must be of JSON type `kind` (str, bool, list, dict); `context` begins the message."""
    if not isinstance(holder, dict) or key not in holder:
        raise internal(f"{context}: {missing(key)}")
    return typed(holder[key], kind, context)


_NAMES = {str: "string", bool: "boolean", list: "array", dict: "object"}


def typed(value: Any, kind: type, context: str) -> Any:
    """Return `value`, which must be of JSON type `kind`."""
    if type(value) is not kind:
        wrong_type(context, _NAMES[kind])
    return value


def unsigned(value: Any, context: str) -> int:
    """Return `value`, which must be an integer in [0, 2^64)."""
    if type(value) is not int or not 0 <= value < 2**64:
        wrong_type(context, "unsigned-integer")
    return int(value)


def wrong_type(context: str, name: str) -> NoReturn:
    """Raise the error of a value of another type."""
    reason = f"attempt to access JSON non-{name} as {name}"
    raise internal(f"{context}: {reason}" if context else reason)
