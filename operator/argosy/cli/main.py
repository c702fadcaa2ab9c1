"""The `argosy` command line: one subcommand per module of this package, loaded when it is asked for."""

import sys
from collections.abc import Iterable
from importlib import import_module

import typer

COMMANDS = ("up", "build", "get", "plan", "render", "simulate", "engines", "crds", "monitoring", "operator", "serve")
_FLAGS_OF_ITS_OWN = {"allow_extra_args": True, "ignore_unknown_options": True}


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the command line with these subcommands."""
    app = typer.Typer(
        name="argosy",
        help="Declare models; Argosy packs them on few GPUs and serves them.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    # With a callback a single subcommand keeps its name.
    app.callback()(lambda: None)
    for name in names:
        command = getattr(import_module(f"argosy.cli.{name}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        elif name == "serve":
            app.command(add_help_option=False, context_settings=_FLAGS_OF_ITS_OWN)(command)
        else:
            app.command()(command)
    return app


def main() -> None:
    """Entry point. What other subcommands need is not loaded: a server starts in half the time."""
    asked = sys.argv[1:2]
    application(asked if asked and asked[0] in COMMANDS else COMMANDS)()
