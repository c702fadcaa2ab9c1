"""One option of a builder: what its value may be, and the check of a value. Pure."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from argosy.api.values.base import Fault
from argosy.api.values.nearest import did_you_mean
from argosy.api.values.quantity import parse_bytes

_SHOWN = 80
MOST = 2**31 - 1
"""The largest of the whole numbers that builders hold in 32 bits."""


class Kind(StrEnum):
    """What a value is, in the words of the docs."""

    WHOLE = "whole number"
    NUMBER = "number"
    FLAG = "true or false"
    CHOICE = "one of"
    QUANTITY = "quantity"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Option:
    """An option. `says` is one sentence; `default` what holds where it is not set, in words.

    `choices` are what a value may be, of a CHOICE (or of a WHOLE number); `items` what each entry of a list is, and of
    a map with free keys each value; `fields` a map's own keys. `nullable`: null has a meaning. `serving`: it decides
    nothing of the engine's files, the server reads it. `forms`: the builder's ways to run that know it; empty: all.
    """

    kind: Kind
    says: str
    default: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[Any, ...] = ()
    items: "Option | None" = None
    fields: "Mapping[str, Option]" = field(default_factory=dict)
    nullable: bool = False
    serving: bool = False
    forms: tuple[str, ...] = ()

    def faults(self, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
        """Yield all that is wrong with a value at `path`."""
        if value is None and self.nullable:
            return
        yield from _CHECKS[self.kind](self, value, path)

    def values(self) -> str:
        """Return what a value may be, in words."""
        if self.choices:
            return ", ".join(_said(each) for each in self.choices)
        if self.kind is Kind.LIST and self.items is not None:
            return f"list of: {self.items.values()}"
        if self.kind is Kind.MAP:
            return f"map of {', '.join(self.fields)}" if self.fields else "map"
        most = None if self.most in (MOST, 2**53 - 1) else self.most
        bounds = [f"{sign} {_number(each)}" for sign, each in (("≥", self.least), ("≤", most)) if each is not None]
        return " ".join([self.kind, ", ".join(bounds)]).strip()


def whole(says: str, least: int = 1, most: int = MOST, **more: Any) -> Option:
    """Return an option that is a whole number."""
    return Option(Kind.WHOLE, says, least=least, most=most, **more)


def numbers(says: str, *choices: int, **more: Any) -> Option:
    """Return an option that is one of some whole numbers."""
    return Option(Kind.WHOLE, says, choices=choices, **more)


def number(says: str, least: float, most: float, **more: Any) -> Option:
    """Return an option that is a number."""
    return Option(Kind.NUMBER, says, least=least, most=most, **more)


def flag(says: str, **more: Any) -> Option:
    """Return an option that is true or false."""
    return Option(Kind.FLAG, says, **more)


def choice(says: str, *choices: str, **more: Any) -> Option:
    """Return an option that is one of some words."""
    return Option(Kind.CHOICE, says, choices=choices, **more)


def names(says: str, *choices: str, **more: Any) -> Option:
    """Return an option that is a list of texts, or of some words."""
    return Option(Kind.LIST, says, items=Option(Kind.CHOICE, "", choices=choices), **more)


def quantity(says: str, **more: Any) -> Option:
    """Return an option that is a size, such as 4Gi."""
    return Option(Kind.QUANTITY, says, **more)


def fields(says: str, known: Mapping[str, Option], **more: Any) -> Option:
    """Return an option that is a map of known keys."""
    return Option(Kind.MAP, says, fields=known, **more)


def found(value: Any) -> str:
    """Return a value, as an error shows it."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _whole(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield Fault(f"expected a whole number; found {found(value)}", path)
    elif option.choices and value not in option.choices:
        yield Fault(f"{value} is none of {option.values()}", path)
    else:
        yield from _within(option, value, path)


def _real(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        yield Fault(f"expected a number; found {found(value)}", path)
    else:
        yield from _within(option, value, path)


def _within(option: Option, value: float, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if option.least is not None and value < option.least:
        yield Fault(f"must be {_number(option.least)} or more; found {value}", path)
    if option.most is not None and value > option.most:
        yield Fault(f"must be {_number(option.most)} or less; found {value}", path)


def _flag(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield Fault(f"expected true or false; found {found(value)}", path)


def _choice(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if not isinstance(value, str) or not value:
        yield Fault(f"expected text; found {found(value)}", path)
    elif option.choices and value not in option.choices:
        near = did_you_mean(value, map(str, option.choices))
        hint = near if near.startswith(";") else ""
        yield Fault(f"{found(value)} is none of {option.values()}{hint}", path)


def _quantity(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    try:
        parse_bytes(value)
    except ValueError as error:
        yield Fault(str(error), path)


def _list(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        yield Fault(f"expected a list; found {found(value)}", path)
        return
    if not value:
        yield Fault("must have 1 or more entries; found 0", path)
    for index, each in enumerate(value):
        if option.items is not None:
            yield from option.items.faults(each, (*path, index))


def _map(option: Option, value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield Fault(f"expected a map of fields; found {found(value)}", path)
        return
    for name, each in value.items():
        known = option.fields.get(name) if option.fields else option.items
        if known is None:
            yield Fault(f"unknown field{did_you_mean(str(name), option.fields)}", (*path, str(name)))
        else:
            yield from known.faults(each, (*path, str(name)))


def _said(value: Any) -> str:
    return str(value)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else re.sub(r"0+$", "", f"{value:f}")


_CHECKS = {
    Kind.WHOLE: _whole,
    Kind.NUMBER: _real,
    Kind.FLAG: _flag,
    Kind.CHOICE: _choice,
    Kind.QUANTITY: _quantity,
    Kind.LIST: _list,
    Kind.MAP: _map,
}
