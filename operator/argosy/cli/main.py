"""The `argosy` command line: one subcommand per module of this package."""

import typer

from argosy.cli.crds import crds
from argosy.cli.get import get
from argosy.cli.operator import operator
from argosy.cli.plan import plan
from argosy.cli.render import render
from argosy.cli.serve import serve
from argosy.cli.up import up

app = typer.Typer(
    name="argosy",
    help="Declare models; Argosy packs them on the fewest GPUs and serves them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(up)
app.command()(get)
app.command()(plan)
app.command()(render)
app.command()(crds)
app.command()(operator)
app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(serve)


def main() -> None:
    """Entry point."""
    app()
