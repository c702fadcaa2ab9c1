"""`argosy engines`: environments of engines on this machine, and the built engines of a pool's cache.

What belongs to a cache is imported when it is used: an image of the server installs engines without it.
"""

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from argosy.cli.terminal import Output, console, print_document, refuse
from argosy.environments.errors import EnvironmentFailedError
from argosy.environments.installing import Request, install, uninstall
from argosy.environments.inventory import Installed, installed
from argosy.environments.recipes import ENGINES, Device, recipe
from argosy_common.engine_folders import VARIABLE, searched
from argosy_common.quantity import format_bytes

engines = typer.Typer(
    no_args_is_help=True,
    help="Install engines of language models on this machine; list or remove the built engines of a cache.",
)
_HERE = "Environments on this machine, for argosy up and serve"
_BUILT = "Engines that builds compiled, in the cache of a pool"
_PIPE_WIDTH = 160
_GPU = Path("/dev/nvidiactl")

Engine = Annotated[str, typer.Argument(help=f"The engine: {' or '.join(ENGINES)}.", show_default=False)]
Into = Annotated[
    Path | None,
    typer.Option(
        "--into",
        help=f"The folder of engine environments. Default: the first that the server searches: that of ${VARIABLE}, or "
        "~/.local/share/argosy/engines.",
        show_default=False,
    ),
]
Filenames = Annotated[
    list[Path] | None,
    typer.Option(
        "--filename", "-f", help="A manifest, or a folder of them: the pool, and the models. May be repeated."
    ),
]
Store = Annotated[
    str, typer.Option("--store", help="The store's URI. Default: spec.storage.engineCache of each pool in -f.")
]
PvcRoot = Annotated[
    Path, typer.Option("--pvc-root", help="The folder in which claims are mounted by name, for pvc: URIs in a Pod.")
]


@engines.command("install", rich_help_panel=_HERE, epilog="Example: argosy engines install vllm")
def install_engine(
    engine: Engine,
    device: Annotated[
        Device | None,
        typer.Option("--device", help="What it computes on. Default: cuda where this machine has an NVIDIA GPU."),
    ] = None,
    into: Into = None,
    python: Annotated[
        str, typer.Option("--python", help="The interpreter to use, 3.11 or later. Default: the one of argosy.")
    ] = "",
    extra_index_url: Annotated[
        list[str] | None,
        typer.Option("--extra-index-url", help="A further package index, in addition to those of pip's settings."),
    ] = None,
    reinstall: Annotated[bool, typer.Option("--reinstall", help="Make it again, even if it is there.")] = False,
) -> None:
    """Install an engine in an environment of its own, in which the server runs its models.

    uv is used where there is one, else pip; both follow pip's settings. An environment is complete or not there.
    """
    started = time.monotonic()
    try:
        chosen = recipe(engine, device, _GPU.exists)
        request = Request(
            chosen, into or searched(os.environ)[0], python or sys.executable, tuple(extra_index_url or ()), reinstall
        )
        folder, record = install(request, lambda line: typer.echo(line, err=True))
    except EnvironmentFailedError as error:
        refuse([str(error)])
    seconds = time.monotonic() - started
    typer.echo(f"{folder}: {', '.join(record.packages)}, Python {record.python}, for {record.device} ({seconds:.0f} s)")
    if folder.parent not in searched(os.environ):
        typer.echo(f"The server finds it with {VARIABLE}={folder.parent}", err=True)


@engines.command("uninstall", rich_help_panel=_HERE, epilog="Example: argosy engines uninstall vllm")
def uninstall_engine(engine: Engine, into: Into = None) -> None:
    """Remove the environment of an engine, unless a model runs in it."""
    root = into or searched(os.environ)[0]
    try:
        removed = engine in ENGINES and uninstall(root, engine)
    except EnvironmentFailedError as error:
        refuse([str(error)])
    if not removed:
        refuse([f"there is no environment of '{engine}' in {root}"])
    typer.echo(f"removed {root / engine}")


@engines.command("installed", rich_help_panel=_HERE, epilog="Example: argosy engines installed -o json")
def installed_engines(
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write them.")] = Output.TABLE,
) -> None:
    """List the engines that are installed on this machine; of several environments the server uses the first."""
    rows = [_described(environment) for environment in installed(searched(os.environ))]
    if output is not Output.TABLE:
        print_document(rows, as_json=output is Output.JSON)
        return
    from rich.table import Table

    table = Table("ENGINE", "FOR", "PYTHON", "PACKAGES", "SIZE", "FOLDER", box=None)
    for row in rows:
        size = format_bytes(int(row["bytes"]))
        table.add_row(row["engine"], row["device"], row["python"], row["packages"], size, row["folder"])
    console(_PIPE_WIDTH).print(table)


def _described(environment: Installed) -> dict[str, str]:
    record = environment.record
    return {
        "engine": environment.engine,
        "device": record.device if record else "",
        "python": record.python if record else "",
        "packages": ", ".join(record.packages) if record else "",
        "bytes": str(environment.size()),
        "folder": str(environment.folder),
    }


@engines.command("list", rich_help_panel=_BUILT, epilog="Example: argosy engines list -f pool.yaml -f models.yaml")
def list_engines(
    filename: Filenames = None,
    store: Store = "",
    pvc_root: PvcRoot = Path("/pvc"),
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write them.")] = Output.TABLE,
) -> None:
    """List every built engine of a cache: what it is, how large, how old, how accurate, and which models use it."""
    from argosy.cli.cluster import engine_cache

    engine_cache.list_engines(filename or [], store, pvc_root, output)


@engines.command(
    "gc",
    rich_help_panel=_BUILT,
    epilog="Example: argosy engines gc -f pool.yaml -f models.yaml --older-than 7d --dry-run",
)
def collect_engines(
    filename: Filenames = None,
    store: Store = "",
    pvc_root: PvcRoot = Path("/pvc"),
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            help="Remove only what was neither written nor requested for this long, such as 30d, 12h or 90m. Must be "
            "longer than a build takes.",
        ),
    ] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")] = False,
) -> None:
    """Remove built engines that no model of -f uses, and what unfinished builds left.

    Without a model in -f only broken engines are removed.
    """
    from argosy.cli.cluster import engine_cache

    engine_cache.collect_engines(filename or [], store, pvc_root, older_than, dry_run)
