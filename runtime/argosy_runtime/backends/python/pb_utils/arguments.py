"""Arguments of models' calls, converted as Triton's binding does: text from str or bytes, integers from anything with
an index.

What cannot be taken is a TypeError in the model's own call, which names the argument and the type.
"""

import operator
from collections.abc import Iterable
from typing import Any


def text(argument: str, value: Any) -> str:
    """Return text as a plain str. Raises TypeError."""
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise TypeError(f"{argument} must be UTF-8: {error}") from None
    raise TypeError(f"{argument} must be str, not {_type(value)}")


def elements(argument: str, values: Any) -> list[Any]:
    """Return a sequence as a list. Raises TypeError."""
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        raise TypeError(f"{argument} must be a list, not {_type(values)}")
    return list(values)


def texts(argument: str, values: Any) -> list[str]:
    """Return a sequence of texts. Raises TypeError."""
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        raise TypeError(f"{argument} must be a list of str, not {_type(values)}")
    return [text(f"an element of {argument}", value) for value in values]


def integer(argument: str, value: Any, least: int, most: int) -> int:
    """Return an integer from `least` to `most`. Raises TypeError."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{argument} must be int, not {_type(value)}") from None
    if not least <= number <= most:
        raise TypeError(f"{argument} must be from {least} to {most}, not {number}")
    return number


def _type(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
