"""The `argosy` command line: its subcommands grouped by task. A command's module is loaded when it is called."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperGroup

GROUPS = {
    "Serve on this machine": {
        "up": "argosy.cli.local.up",
        "get": "argosy.cli.local.get",
        "build": "argosy.cli.local.build",
        "serve": "argosy.cli.local.serve",
        "engines": "argosy.cli.engines",
    },
    "Plan and simulate": {
        "plan": "argosy.cli.planning.plan",
        "render": "argosy.cli.planning.render",
        "simulate": "argosy.cli.simulation.simulate",
        "replay": "argosy.cli.planning.replay",
    },
    "Measure": {
        "bench": "argosy.cli.bench.bench",
        "advise": "argosy.cli.bench.advise",
        "profile": "argosy.cli.profile.profile",
    },
    "Roll out versions": {
        "rollout": "argosy.cli.rollout.commands",
    },
    "Operate in a cluster": {
        "operator": "argosy.cli.cluster.operator",
    },
    "Generate files": {
        "crds": "argosy.cli.generated",
    },
}
"""The modules of subcommands, in the groups and the order in which `argosy --help` shows them."""
COMMANDS = tuple(name for group in GROUPS.values() for name in group)
_EPILOG = {
    "up": "Example: argosy up examples/assistant",
    "get": "Examples: argosy get -o wide, or argosy get model NAME -o yaml",
    "build": "Example: argosy build -f examples/digits",
    "plan": "Example: argosy plan -f examples/llama-70b --nodes examples/llama-70b/nodes.yaml",
    "render": "Example: argosy render -f examples/assistant --config-only -o repositories",
    "simulate": "Example: argosy simulate -f manifests --trace trace.csv --service service.yaml --beside hpa",
    "replay": "Example: argosy replay default_gpus-20260504T120000.000000Z.json.gz",
    "bench": "Example: argosy bench engine=http://localhost:8000 vllm=http://localhost:9000 --budget ttft=200ms",
    "advise": "Example: argosy advise -f chat.yaml --results bench.json --rate 5",
    "profile": "Example: argosy profile digits -f examples/digits --latency-budget 20ms --patch digits.patch.yaml",
    "operator": "Example: argosy operator --kubeconfig ~/.kube/config --namespace inference",
    "crds": "Example: argosy crds --check",
}
_PASS_FLAGS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
_USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""Click's UsageError, which some releases of typer have in a package of their own."""


class InputGroup(TyperGroup):
    """Commands whose usage errors are errors of their input: exit status 1. With 2 they say what came of theirs."""

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Parse the arguments before the command. Raises UsageError."""
        with _as_input():
            return super().make_context(*args, **settings)

    def invoke(self, *args: Any) -> Any:
        """Run the command, or that of a command's own group. Raises UsageError."""
        with _as_input():
            return super().invoke(*args)


@contextmanager
def _as_input() -> Iterator[None]:
    """Give usage errors the exit status of wrong input."""
    try:
        yield
    except _USAGE_ERROR as error:
        vars(error)["exit_code"] = 1
        raise


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the command line with these subcommands."""
    app = typer.Typer(
        name="argosy",
        cls=InputGroup,
        help="Declare models; Argosy packs them on few GPUs and serves them.",
        epilog="argosy COMMAND --help describes a command and its options.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    # With a callback a single subcommand keeps its name.
    app.callback()(lambda: None)
    for name in names:
        _add(app, name)
    return app


def _add(app: typer.Typer, name: str) -> None:
    """Add one subcommand to its group."""
    group, module = next((group, modules[name]) for group, modules in GROUPS.items() if name in modules)
    command = getattr(import_module(module), name)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name, rich_help_panel=group)
    elif name == "serve":
        app.command(add_help_option=False, context_settings=_PASS_FLAGS_ON, rich_help_panel=group)(command)
    else:
        app.command(epilog=_EPILOG.get(name), rich_help_panel=group)(command)
