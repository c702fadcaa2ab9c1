"""JSON that is nested more deeply than its parser goes."""

import re
from typing import Final

from argosy_runtime.errors import ServingError, invalid

MAX_NESTING: Final = 100
"""How many arrays a tensor's `data` may be nested in."""
_DEEPEST: Final = 2 * MAX_NESTING
_LONGEST: Final = 1 << 20
"""Longer texts take too long to look through."""
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_OPENING: Final = {b"[": b"]", b"{": b"}"}


def too_deep(context: str = "") -> ServingError:
    """Return the error of a document that is nested too deeply; `context` begins its message."""
    return invalid(f"{context}JSON nesting depth exceeds maximum allowed limit ({MAX_NESTING})")


def shallow(text: bytes) -> bytes | None:
    """Return a document with empty arrays and objects at a depth at which all that Triton reads has ended.

    So members of a document are found even where one of them is too deep to be parsed. None where its brackets do not
    match. Raises INVALID_ARG where the text is too long to be looked through.
    """
    if len(text) > _LONGEST:
        raise too_deep()
    pieces: list[bytes] = []
    closing: list[bytes] = []
    at = 0
    for token in _TOKENS.finditer(text):
        bracket = token.group()
        if bracket in _OPENING:
            closing.append(_OPENING[bracket])
            if len(closing) == _DEEPEST:
                pieces.append(text[at : token.end()])
        elif bracket in (b"]", b"}"):
            if not closing or closing.pop() != bracket:
                return None
            if len(closing) == _DEEPEST - 1:
                at = token.start()
    return None if closing else b"".join((*pieces, text[at:]))
