"""Reading `engine.options`: what a builder takes, by name, and what is told of anything else. Pure.

Manifests are checked by the operator's tables before; a request by hand, or of an operator of another release, is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from argosy_agent.contract.builds import BuildFailure

from .contract import BuildError


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its Python type, what holds where it is not set, and the only values there are, if they are few.

    Of a list, `choices` are those of its entries. `least` bounds a number.
    """

    kind: type
    default: Any = None
    choices: tuple[Any, ...] = ()
    least: float | None = None


def read(options: Mapping[str, Any], table: Mapping[str, Option], under: str = "") -> dict[str, Any]:
    """Return every option of the table with its value or default; `under` is their path below `engine.options`.

    Raises BuildError: INVALID_OPTIONS, by path.
    """
    unknown = sorted(set(options) - set(table))
    if unknown:
        near = get_close_matches(unknown[0], table, 1)
        meant = f"; do you mean {near[0]}?" if near else f"; there are {', '.join(table)}"
        raise invalid(under + unknown[0], f"unknown option{meant}")
    for name, value in options.items():
        _check(under + name, value, table[name])
    return {name: options.get(name, option.default) for name, option in table.items()}


def invalid(name: str, message: str) -> BuildError:
    """Return the error of one option."""
    return BuildError(BuildFailure.INVALID_OPTIONS, f"engine.options.{name}: {message}")


def _check(name: str, value: Any, option: Option) -> None:
    right = isinstance(value, option.kind) or (option.kind is float and isinstance(value, int))
    if not right or (isinstance(value, bool) and option.kind is not bool):
        raise invalid(name, f"expected {_WORDS[option.kind]}; found {value!r:.80}")
    entries = value if option.kind is list else (value,)
    if option.kind is list and not (entries and all(isinstance(each, str) and each for each in entries)):
        raise invalid(name, f"expected a list of texts; found {value!r:.80}")
    wrong = [each for each in entries if option.choices and each not in option.choices]
    if wrong:
        raise invalid(name, f"{wrong[0]!r:.80} is none of {', '.join(map(str, option.choices))}")
    if option.least is not None and value < option.least:
        raise invalid(name, f"must be {option.least:g} or more; found {value}")


_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a map",
}
