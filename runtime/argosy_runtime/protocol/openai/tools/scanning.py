"""A call in JSON that comes in pieces: `{"name": …, "arguments": {…}}`, read as far as it has come."""

import json
from dataclasses import dataclass
from typing import Final

_ARGUMENTS: Final = frozenset({"arguments", "parameters"})
_NAME: Final = frozenset({"name", "function"})
_SPACE: Final = " \t\r\n"


@dataclass(frozen=True, slots=True)
class CallStart:
    """The start of a call of the function with this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """A piece of the arguments of the last call, as the model writes them."""

    text: str


Piece = str | CallStart | Arguments
"""A piece of a model's text: of its content, or of a call."""


class ValueScanner:
    """Finds the end of one JSON value, by braces, brackets and strings."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._begun = False

    def ends_before(self, character: str) -> bool:
        """Return whether the value ended before this character, which separates it from what follows."""
        return self._begun and not self._in_string and self._depth == 0 and character in ",}]" + _SPACE

    def take(self, character: str) -> bool:
        """Take the next character of the value. Return whether the value ends with it."""
        self._begun = True
        if self._in_string:
            if self._escaped:
                self._escaped = False
            elif character == "\\":
                self._escaped = True
            elif character == '"':
                self._in_string = False
                return self._depth == 0
            return False
        if character == '"':
            self._in_string = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1
            return self._depth == 0
        return False


class CallScanner:
    """Reads one JSON object with a call. Its arguments are passed on as they come, once the name is known."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.has_ended = False
        self.is_broken = False
        self._begun = False
        self._key: str | None = None
        self._value: ValueScanner | None = None
        self._raw = ""
        self._pending = ""  # arguments that came before the name
        self._has_arguments = False

    def feed(self, text: str) -> tuple[list[Piece], str]:
        """Take the next piece of text. Return the pieces of the call, and the text after its end."""
        pieces: list[Piece] = []
        for at, character in enumerate(text):
            self._take(character, pieces)
            if self.has_ended or self.is_broken:
                return _joined(pieces), text[at + 1 :]
        return _joined(pieces), ""

    def _take(self, character: str, pieces: list[Piece]) -> None:
        if self._value is not None and self._value.ends_before(character):
            self._end_value(pieces)
        if self._value is not None:
            self._take_value(character, pieces)
        elif not self._begun:
            self._begun = character == "{"
            self.is_broken = not self._begun and character not in _SPACE
        elif character == "}":
            self.has_ended = True
            if self.name is not None and not self._has_arguments:
                pieces.append(Arguments("{}"))
        elif (character == ":" and self._key is not None) or character == "," or character in _SPACE:
            pass
        else:
            self._begin_value(character, pieces)

    def _begin_value(self, character: str, pieces: list[Piece]) -> None:
        """Begin a key or, after one, its value."""
        if self._key is None and character != '"':
            self.is_broken = True
            return
        self._value = ValueScanner()
        self._raw = ""
        self._take_value(character, pieces)

    def _take_value(self, character: str, pieces: list[Piece]) -> None:
        assert self._value is not None
        streams = self._key in _ARGUMENTS and (self._raw or character).startswith("{")
        self._raw += character
        if streams:
            self._pass_on(character, pieces)
        if self._value.take(character):
            self._end_value(pieces)

    def _end_value(self, pieces: list[Piece]) -> None:
        key, raw = self._key, self._raw
        self._value = None
        if key is None:
            self._key = _string(raw)
            self.is_broken = self._key is None
            return
        self._key = None
        if key in _NAME and self.name is None and (name := _string(raw)) is not None:
            self.name = name
            pieces.append(CallStart(name))
            if self._pending:
                pieces.append(Arguments(self._pending))
        elif key in _ARGUMENTS and not raw.startswith("{"):
            text = _string(raw)  # some models write the arguments as a string of JSON
            self._pass_on(text if text is not None else "{}", pieces)

    def _pass_on(self, text: str, pieces: list[Piece]) -> None:
        self._has_arguments = True
        if self.name is None:
            self._pending += text
        else:
            pieces.append(Arguments(text))


def _string(raw: str) -> str | None:
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with arguments that follow each other as one."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and isinstance(piece, Arguments) and isinstance(joined[-1], Arguments):
            joined[-1] = Arguments(joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined
