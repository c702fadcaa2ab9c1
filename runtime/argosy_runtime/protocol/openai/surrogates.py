"""Halves of surrogate pairs in JSON: escapes that are no character, which programs make of broken text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from argosy_runtime.tensors import Data

_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_MARK: Final = "\ue000half-of-a-pair\ue000"


@dataclass(frozen=True, slots=True)
class LoneSurrogate:
    """An escape such as `\\ud800`. `path`: the parameter that has it, empty where the rest of the body is no JSON."""

    escape: str
    path: str


def lone_surrogate(body: Data) -> LoneSurrogate | None:
    """Return the first half of a pair without the other one in a JSON text, None where there is none."""
    text = bytes(body)
    pieces: list[bytes] = []
    first, end = "", 0
    for match in _lone(text):
        pieces.append(text[end : match.start()])
        if not first:
            first = match[0].decode()
            pieces.append(_MARK.encode())
        end = match.end()
    if not first:
        return None
    try:
        path = _path(msgspec.json.decode(b"".join([*pieces, text[end:]])))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        path = None
    return LoneSurrogate(first, path or "")


def _lone(text: bytes) -> "Iterator[re.Match[bytes]]":
    high: re.Match[bytes] | None = None
    for escape in _ESCAPE.finditer(text):
        code = int(escape[1], 16) if escape[1] else 0
        is_low = 0xDC00 <= code < 0xE000
        if high is not None and is_low and escape.start() == high.end():
            high = None
            continue
        if high is not None:
            yield high
        if is_low:
            yield escape
        high = escape if 0xD800 <= code < 0xDC00 else None
    if high is not None:
        yield high


def _path(value: Any, path: str = "") -> str | None:
    """Return where in a document the mark is: `messages[0].content`."""
    if isinstance(value, str):
        return path if _MARK in value else None
    if isinstance(value, list):
        children = [(f"{path}[{at}]", item) for at, item in enumerate(value)]
    elif isinstance(value, dict):
        if any(_MARK in key for key in value):
            return path
        children = [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
    else:
        return None
    return next((match for where, item in children if (match := _path(item, where)) is not None), None)
