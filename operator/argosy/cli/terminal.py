"""Common parts of subcommands: a console for tables, documents for programs, and errors."""

import json
import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import yaml
from rich.console import Console

Filenames = Annotated[
    list[Path], typer.Option("--filename", "-f", help="A manifest, or a folder of them; may be repeated.")
]
"""The option of commands that read manifests. A file that does not exist is an error of the input."""


class Output(StrEnum):
    """How a command writes its result."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def console(width: int) -> Console:
    """Return the console for tables: as wide as the terminal, or `width` characters where output is no terminal."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=width)


def print_document(document: Any, *, as_json: bool) -> None:
    """Write plain values to standard output as JSON or YAML."""
    text = json.dumps(document, indent=2)
    # Through JSON, so that YAML writes tuples as lists and no anchors for values that occur twice.
    sys.stdout.write(text + "\n" if as_json else yaml.safe_dump(json.loads(text), sort_keys=False))


def refuse(problems: Iterable[str]) -> NoReturn:
    """Print each problem on a line of its own, and end with exit status 1."""
    for problem in problems:
        typer.echo(problem, err=True)
    raise typer.Exit(1)


def with_options(options: type, parameter: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the fields of a dataclass as options, in place of one parameter."""
    fields = signature(options, eval_str=True).parameters

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_fields(**values: Any) -> None:
            group = options(**{name: values.pop(name) for name in fields})
            command(**{parameter: group}, **values)

        own = [one for one in signature(command, eval_str=True).parameters.values() if one.name != parameter]
        every = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in (*own, *fields.values())]
        with_fields.__signature__ = Signature(every)  # type: ignore[attr-defined]
        return with_fields

    return decorated
