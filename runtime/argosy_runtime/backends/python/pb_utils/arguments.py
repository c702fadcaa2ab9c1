"""Arguments of models' calls, converted as Triton's binding does: text from str or bytes, integers from any number
that is no float.

What cannot be taken is a TypeError in the model's own call, which names the argument and the type.
"""

import operator
from collections.abc import Iterable
from contextlib import suppress
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
    return values.copy() if type(values) is list else _listed(argument, values, "a list")


def texts(argument: str, values: Any) -> list[str]:
    """Return a sequence of texts. Raises TypeError."""
    return [text(f"an element of {argument}", value) for value in _listed(argument, values, "a list of str")]


def integer(argument: str, value: Any, least: int, most: int) -> int:
    """Return an integer from `least` to `most`, of any number but a float. Raises TypeError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = _truncated(argument, value)
    if not least <= number <= most:
        raise TypeError(f"{argument} must be from {least} to {most}, not {number}")
    return number


def _listed(argument: str, values: Any, expected: str) -> list[Any]:
    is_sequence = isinstance(values, Iterable) or hasattr(values, "__getitem__")
    if isinstance(values, str | bytes | bytearray) or not is_sequence:
        raise TypeError(f"{argument} must be {expected}, not {_type(values)}")
    return list(values)


def _truncated(argument: str, value: Any) -> int:
    """Return the integer of a number without an index: numpy's bools have none."""
    if not isinstance(value, float) and hasattr(value, "__int__"):
        with suppress(TypeError, ValueError, OverflowError):
            return int(value)
    raise TypeError(f"{argument} must be int, not {_type(value)}") from None


def _type(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
