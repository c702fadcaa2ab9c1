"""Reading JSON values of any kind: each field is what it should be, or an error names it. Pure."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

_REQUIRED: Any = object()
NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
LONGEST_NAME = 255
"""Bytes that a file's name may have."""
_MOST_NAMED = 5
"""How many names one error lists."""


class DocumentError(ValueError):
    """A text is not what it should be; the message names the field."""


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object, and where it stands in its document."""

    values: Mapping[str, Any]
    path: str

    def at(self, key: str) -> str:
        """Return where a field stands."""
        return f"{self.path}.{key}"

    def text(self, key: str, default: str = _REQUIRED) -> str:
        """Return a string."""
        return unicode_text(self._value(key, default, str, "a string"), self.at(key))

    def flag(self, key: str, default: bool = _REQUIRED) -> bool:
        """Return true or false."""
        return bool(self._value(key, default, bool, "true or false"))

    def number(self, key: str, default: int = _REQUIRED) -> int:
        """Return a whole number that is not negative."""
        return number(self._value(key, default, int, "a whole number"), self.at(key))

    def amount(self, key: str, default: float = _REQUIRED) -> float:
        """Return a finite number."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            self._value(key, default, float, "a finite number")
            raise DocumentError(f"{self.at(key)} must be a finite number, not {value!r}")
        return float(value)

    def numbers(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers that are not negative; none where it is missing."""
        values = self._value(key, [], list, "a list")
        return tuple(number(value, f"{self.at(key)}[{index}]") for index, value in enumerate(values))

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers, negative ones too; none where it is missing."""
        values = self._value(key, [], list, "a list")
        if any(isinstance(value, bool) or not isinstance(value, int) for value in values):
            raise DocumentError(f"{self.at(key)} must be a list of whole numbers, not {values!r:.80}")
        return tuple(values)

    def one_of(self, key: str, words: Iterable[str]) -> str:
        """Return one of these words."""
        word, choices = self.text(key), list(map(str, words))
        if word not in choices:
            raise DocumentError(f"{self.at(key)}: {word!r} is none of {', '.join(choices)}")
        return word

    def mapping(self, key: str, default: Mapping[str, Any] = _REQUIRED) -> "Fields":
        """Return an object."""
        return as_fields(self._value(key, default, dict, "an object"), self.at(key))

    def list(self, key: str, default: "Sequence[Any]" = _REQUIRED) -> "tuple[Fields, ...]":
        """Return a list of objects."""
        values = self._value(key, default, list, "a list")
        return tuple(as_fields(value, f"{self.at(key)}[{index}]") for index, value in enumerate(values))

    def _value(self, key: str, default: Any, kind: type, words: str) -> Any:
        value = self.values.get(key, default)
        if value is _REQUIRED:
            raise DocumentError(f"{self.at(key)} is missing")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise DocumentError(f"{self.at(key)} must be {words}, not {value!r:.80}")
        return value


def document(text: str, name: str) -> Fields:
    """Return the JSON object in a text that is called `name`. Raises DocumentError where it is none."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise DocumentError(f"{name} is not JSON: {error}") from error
    except RecursionError as error:
        raise DocumentError(f"{name} is nested too deeply") from error
    return as_fields(value, name)


def as_fields(value: Any, path: str) -> Fields:
    """Return a JSON object's fields. Raises DocumentError where it is none."""
    if not isinstance(value, dict):
        raise DocumentError(f"{path} must be an object, not {value!r:.80}")
    return Fields(value, path)


def number(value: str | int, path: str) -> int:
    """Return a whole number that is not negative, also as an object's key. Raises DocumentError."""
    words = str(value)
    if not NUMBER.fullmatch(words):
        raise DocumentError(f"{path} must be a whole number that is not negative, not {words!r:.80}")
    return int(words)


def check_unique(names: Iterable[str], path: str) -> None:
    """Check that names are unique. Raises DocumentError with the duplicates."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DocumentError(f"{path}: {_listed(twice)} stands there more than once")


def _listed(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def unicode_text(value: str, path: str) -> str:
    """Return a text that can be written: JSON's escapes also make halves of characters. Raises DocumentError."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(f"{path} is no Unicode text: {error.reason}") from error
    return value


def uri(value: str, path: str) -> str:
    """Return a URI that can be parsed, or nothing. Raises DocumentError, without the URI: it may have a password."""
    try:
        urlsplit(value)
    except ValueError as error:
        raise DocumentError(f"{path} is no URI") from error
    if "\0" in value:
        raise DocumentError(f"{path} is no URI: it holds a null character")
    return value


def file_name(name: str, path: str) -> str:
    """Return a name that is safe as a file's. Raises DocumentError."""
    if not name or name.startswith(".") or "/" in name or "\0" in name or len(name.encode()) > LONGEST_NAME:
        raise DocumentError(f"{path}: {name!r:.80} cannot be a file's name")
    return name


def relative_path(path: str, field: str) -> str:
    """Return a path that stays beneath its folder, each part of it a file's name. Raises DocumentError."""
    for part in path.split("/"):
        file_name(part, field)
    return path
