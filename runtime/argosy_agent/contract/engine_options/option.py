"""An option of a builder: its type, its default, and the check of a value."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from argosy_common.quantity import parse_bytes
from argosy_common.wording import did_you_mean, shortened

_LONGEST_SHOWN = 80
INT32_MAX = 2**31 - 1
"""The largest whole number of builders that hold them in 32 bits."""


class Kind(StrEnum):
    """The type of a value, in the words of the docs."""

    INTEGER = "whole number"
    NUMBER = "number"
    FLAG = "true or false"
    CHOICE = "one of"
    QUANTITY = "quantity"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in an engine's fields: a message, and the path of the field relative to `spec.engine`."""

    message: str
    path: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a builder.

    `description` is one sentence. `default` is the value that holds where the option is not set, or words that
    describe it. `choices` are the values of a CHOICE (or of a INTEGER number); `items` describes the entries of a list,
    or the values of a map with free keys; `fields` are a map's own keys. `nullable`: null has a meaning. `serving`:
    only the server reads it, and the engine's files do not depend on it.
    """

    kind: Kind
    description: str
    default: Any = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] = ()
    items: "Option | None" = None
    fields: "Mapping[str, Option]" = field(default_factory=dict)
    nullable: bool = False
    serving: bool = False

    @property
    def default_value(self) -> Any:
        """The default, or None where only words describe it."""
        return None if any(self.faults(self.default, ())) else self.default

    def faults(self, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
        """Yield the errors of a value at `path`."""
        if value is None and self.nullable:
            return
        yield from _CHECKS[self.kind](self, value, path)

    def values(self) -> str:
        """Return the permitted values, in words."""
        if self.choices:
            return ", ".join(str(choice) for choice in self.choices)
        if self.kind is Kind.LIST and self.items is not None:
            return f"list of: {self.items.values()}"
        if self.kind is Kind.MAP:
            return f"map of {', '.join(self.fields)}" if self.fields else "map"
        maximum = None if self.maximum in (INT32_MAX, 2**53 - 1) else self.maximum
        bounds = [
            f"{sign} {_number(bound)}" for sign, bound in (("≥", self.minimum), ("≤", maximum)) if bound is not None
        ]
        return " ".join([self.kind, ", ".join(bounds)]).strip()


def integer(description: str, minimum: int = 1, maximum: int = INT32_MAX, **more: Any) -> Option:
    """Return an option that is a whole number."""
    return Option(Kind.INTEGER, description, minimum=minimum, maximum=maximum, **more)


def integers(description: str, *choices: int, **more: Any) -> Option:
    """Return an option that is one of some whole numbers."""
    return Option(Kind.INTEGER, description, choices=choices, **more)


def number(description: str, minimum: float, maximum: float, **more: Any) -> Option:
    """Return an option that is a number."""
    return Option(Kind.NUMBER, description, minimum=minimum, maximum=maximum, **more)


def flag(description: str, **more: Any) -> Option:
    """Return an option that is true or false."""
    return Option(Kind.FLAG, description, **more)


def choice(description: str, *choices: str, **more: Any) -> Option:
    """Return an option that is one of some words."""
    return Option(Kind.CHOICE, description, choices=choices, **more)


def names(description: str, *choices: str, **more: Any) -> Option:
    """Return an option that is a list of texts, or of some words."""
    return Option(Kind.LIST, description, items=Option(Kind.CHOICE, "", choices=choices), **more)


def quantity(description: str, **more: Any) -> Option:
    """Return an option that is a size, such as 4Gi."""
    return Option(Kind.QUANTITY, description, **more)


def fields(description: str, options: Mapping[str, Option], **more: Any) -> Option:
    """Return an option that is a map of these keys."""
    return Option(Kind.MAP, description, fields=options, **more)


def _shown(value: Any) -> str:
    """Return a value as errors show it."""
    return shortened(repr(value), _LONGEST_SHOWN)


def _integer(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield Fault(f"expected a whole number; found {_shown(value)}", path)
    elif option.choices and value not in option.choices:
        yield Fault(f"{value} is none of {option.values()}", path)
    else:
        yield from _within(option, value, path)


def _real(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        yield Fault(f"expected a number; found {_shown(value)}", path)
    else:
        yield from _within(option, value, path)


def _within(option: Option, value: float, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if option.minimum is not None and value < option.minimum:
        yield Fault(f"must be {_number(option.minimum)} or more; found {value}", path)
    if option.maximum is not None and value > option.maximum:
        yield Fault(f"must be {_number(option.maximum)} or less; found {value}", path)


def _flag(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield Fault(f"expected true or false; found {_shown(value)}", path)


def _choice(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if not isinstance(value, str) or not value:
        yield Fault(f"expected text; found {_shown(value)}", path)
    elif option.choices and value not in option.choices:
        near = did_you_mean(value, map(str, option.choices))
        hint = near if near.startswith(";") else ""
        yield Fault(f"{_shown(value)} is none of {option.values()}{hint}", path)


def _quantity(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    try:
        parse_bytes(value)
    except ValueError as error:
        yield Fault(str(error), path)


def _list(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        yield Fault(f"expected a list; found {_shown(value)}", path)
        return
    if not value:
        yield Fault("must have 1 or more entries; found 0", path)
    for index, entry in enumerate(value):
        if option.items is not None:
            yield from option.items.faults(entry, (*path, index))


def _map(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield Fault(f"expected a map of fields; found {_shown(value)}", path)
        return
    for name, entry in value.items():
        declared = option.fields.get(name) if option.fields else option.items
        if declared is None:
            yield Fault(f"unknown field{did_you_mean(str(name), option.fields)}", (*path, str(name)))
        else:
            yield from declared.faults(entry, (*path, str(name)))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else re.sub(r"0+$", "", f"{value:f}")


_CHECKS = {
    Kind.INTEGER: _integer,
    Kind.NUMBER: _real,
    Kind.FLAG: _flag,
    Kind.CHOICE: _choice,
    Kind.QUANTITY: _quantity,
    Kind.LIST: _list,
    Kind.MAP: _map,
}
