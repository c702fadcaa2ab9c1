"""Calls in the text of a model, which comes in pieces: in the forms of Hermes and Qwen, of Llama 3, and of Mistral.

    <tool_call>{"name": "f", "arguments": {…}}</tool_call>         Hermes, Qwen
    <|python_tag|>{"name": "f", "parameters": {…}}; {…}            Llama 3, also without the marker
    [TOOL_CALLS][{"name": "f", "arguments": {…}}, {…}]             Mistral, also without the marker
    [TOOL_CALLS]f[ARGS]{…}                                         Mistral of later releases, also without the markers

A call without a marker is one only at the start of the text and for a function that the request has. Markers are text
here: engines leave out those that are special tokens.
"""

from collections.abc import Callable, Collection
from typing import Final, Protocol

from .scanning import Arguments, CallScanner, CallStart, Piece, ValueScanner

_OPEN: Final = "<tool_call>"
_PYTHON: Final = "<|python_tag|>"
_MISTRAL: Final = "[TOOL_CALLS]"
_CLOSE: Final = "</tool_call>"
_MARKERS: Final = (_OPEN, _PYTHON, _MISTRAL)
_BETWEEN: Final = (*_MARKERS, _CLOSE)
_SEPARATORS: Final = " \t\r\n,;"


class Calls(Protocol):
    """The calls in a text."""

    def feed(self, text: str) -> list[Piece]:
        """Take the next piece of text. Return the pieces of content and of calls that are certain."""

    def end(self) -> list[Piece]:
        """Return what is left once the text is complete."""


class NamedCalls:
    """The text of a model that has to call one function: all of it is the arguments."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = False

    def feed(self, text: str) -> list[Piece]:
        if not text:
            return []
        start: list[Piece] = [] if self._begun else [CallStart(self._name)]
        self._begun = True
        return [*start, Arguments(text)]

    def end(self) -> list[Piece]:
        return []


class TextCalls:
    """The calls in a text that may have some, of functions with these names.

    The result does not depend on how the text is divided into pieces.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._text = ""  # what is still to be read
        self._raw = ""  # what has been read, and may be content or the start of a call
        self._marked = False  # calls may be of any function
        self._complete = False
        self._call = CallScanner()
        self._value = ValueScanner()
        self._read: Callable[[list[Piece]], bool] = self._read_begin

    def feed(self, text: str) -> list[Piece]:
        self._text += text
        pieces: list[Piece] = []
        while self._text and self._read(pieces):
            pass
        return pieces

    def end(self) -> list[Piece]:
        self._complete = True
        pieces = self.feed("")
        _add(pieces, self._raw + self._text)
        self._raw = self._text = ""
        return pieces

    # Each of these reads in one state. They return whether there may be more to read.

    def _read_begin(self, pieces: list[Piece]) -> bool:
        """Decide whether the text begins with a call, or with content."""
        text = self._text.lstrip()
        if not self._complete and (not text or _may_become(text, _MARKERS)):
            return False
        if text.startswith(_MARKERS):
            self._text = text
            self._read = self._read_between
            return True
        opened = text.removeprefix("[").lstrip()
        if not opened and not self._complete:
            return False
        name, brace, _ = text.partition("{")
        if opened.startswith("{"):
            self._begin_call(opened, self._text[: len(self._text) - len(opened)])
        elif brace and name.strip() in self._names:
            self._read = self._read_name
        elif brace or self._complete or not any(offered.startswith(name.strip()) for offered in self._names):
            self._read = self._read_content
        else:
            return False
        return True

    def _read_content(self, pieces: list[Piece]) -> bool:
        first = min((at for marker in _MARKERS if (at := self._text.find(marker)) >= 0), default=-1)
        if first < 0:
            beginning = 0 if self._complete else max(_beginning(self._text, marker) for marker in _MARKERS)
            first = len(self._text) - beginning
        _add(pieces, self._text[:first])
        self._text = self._text[first:]
        self._read = self._read_between if self._text.startswith(_MARKERS) else self._read_content
        return self._read == self._read_between

    def _read_between(self, pieces: list[Piece]) -> bool:
        """Read what is before, between and after calls."""
        text = self._text.lstrip(_SEPARATORS)
        if not self._complete and (not text or _may_become(text, _BETWEEN)):
            return False
        self._text = text
        marker = next((marker for marker in _BETWEEN if text.startswith(marker)), "")
        if marker:
            self._marked = True
            self._raw = "" if marker == _CLOSE else marker
            self._text = text[len(marker) :]
        elif text.startswith(("[", "]")):
            self._text = text[1:]
        elif text.startswith("{"):
            self._begin_call(text, self._raw)
        elif text and self._raw:  # directly after a marker
            self._read = self._read_name
        else:
            self._marked = False
            self._read = self._read_content
        return True

    def _read_name(self, pieces: list[Piece]) -> bool:
        """Read a name that is before the object with its arguments."""
        before, brace, _ = self._text.partition("{")
        if not brace and not self._complete:
            return False
        name = before.partition("[")[0].strip()
        if not brace or not name:
            self._give_up(pieces)
            return True
        pieces.append(CallStart(name))
        self._raw = ""
        self._text = self._text[len(before) :]
        self._value = ValueScanner()
        self._read = self._read_arguments
        return True

    def _read_arguments(self, pieces: list[Piece]) -> bool:
        end = next((at for at, character in enumerate(self._text, 1) if self._value.take(character)), 0)
        pieces.append(Arguments(self._text[: end or len(self._text)]))
        self._text = self._text[end:] if end else ""
        if end:
            self._end_call()
        return bool(end)

    def _begin_call(self, text: str, raw: str) -> None:
        self._text, self._raw = text, raw
        self._call = CallScanner()
        self._read = self._read_call

    def _read_call(self, pieces: list[Piece]) -> bool:
        read, rest = self._call.feed(self._text)
        self._raw += self._text[: len(self._text) - len(rest)]
        self._text = rest
        call = self._call
        if (
            call.is_broken
            or (call.has_ended and call.name is None)
            or not (self._marked or self._is_offered(call.name))
        ):
            self._give_up(pieces)
            return True
        pieces += read
        if call.name is not None:
            self._raw = ""
        if call.has_ended:
            self._end_call()
        return True

    def _is_offered(self, name: str | None) -> bool:
        return name is None or name in self._names

    def _end_call(self) -> None:
        self._marked = True
        self._raw = ""
        self._read = self._read_between

    def _give_up(self, pieces: list[Piece]) -> None:
        """Take for content what has been read as a call."""
        _add(pieces, self._raw)
        self._raw = ""
        self._marked = False
        self._read = self._read_content


def _add(pieces: list[Piece], text: str) -> None:
    if text:
        pieces.append(text)


def _may_become(text: str, markers: tuple[str, ...]) -> bool:
    """Return whether the text is the start of a marker, and not all of it."""
    return any(len(text) < len(marker) and marker.startswith(text) for marker in markers)


def _beginning(text: str, marker: str) -> int:
    """Return how many characters at the end of the text are the start of a marker."""
    return next((n for n in range(min(len(marker) - 1, len(text)), 0, -1) if text.endswith(marker[:n])), 0)
