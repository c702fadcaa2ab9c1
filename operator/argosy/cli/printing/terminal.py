"""What every subcommand says in the same way: tables where nobody looks, and that it cannot go on."""

from collections.abc import Iterable
from typing import NoReturn

import typer
from rich.console import Console


def console(width: int) -> Console:
    """Return where tables go: as wide as the terminal, or `width` characters where there is none."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=width)


def refuse(problems: Iterable[str]) -> NoReturn:
    """Say each problem on a line of its own, and end with 1."""
    for problem in problems:
        typer.echo(problem, err=True)
    raise typer.Exit(1)
