"""`argosy up`: serve a folder of manifests on this machine."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from argosy.cli.terminal import refuse
from argosy.local.machine import this_machine
from argosy.local.servers.fleet import Listening, LocalFleet
from argosy.local.servers.ports import ListenError, Ports, repeated_port
from argosy.local.state import DEFAULT_STATE, StateFolder, StateInUseError
from argosy.local.supervisor import Goal, InvalidManifestsError, Supervisor
from argosy.local.views.line_view import LineView
from argosy.local.views.rows import View
from argosy.local.views.table_view import TableView
from argosy.replay.folder import Record, bundle_recorder


def up(
    path: Annotated[Path, typer.Argument(help="A manifest, or a folder of them.", exists=True)],
    http_port: Annotated[int, typer.Option(help="The port of V2 over HTTP.", min=1, max=65535)] = 8000,
    grpc_port: Annotated[int, typer.Option(help="The port of V2 over gRPC.", min=1, max=65535)] = 8001,
    metrics_port: Annotated[int, typer.Option(help="The port of Prometheus metrics.", min=1, max=65535)] = 8002,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    state: Annotated[Path, typer.Option(help="The folder of cached models, logs and statuses.")] = DEFAULT_STATE,
    bundles: Annotated[
        Path | None,
        typer.Option(help="A folder for bundles: what the newest rounds saw and decided, for argosy replay."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop once everything is Ready, or cannot be.")] = False,
    timeout: Annotated[float | None, typer.Option(help="With --once: the most seconds to wait.", min=0)] = None,
) -> None:
    """Serve what the manifests declare, on this machine's GPUs or its CPU, and follow their edits.

    Invalid resources are named; valid ones are served all the same. Ctrl-C drains and stops everything.

    Exit status: 0 when it was stopped; 1, with the reasons, if no resource is valid or a port is taken. With --once
    also 1 if a resource is invalid, or does not become Ready.
    """
    folder = StateFolder(state.absolute())
    ports = Ports(http_port, grpc_port, metrics_port)
    if wrong := _wrong_flags(ports, Goal(once, timeout)):
        refuse(wrong)
    try:
        with folder.locked():
            folder.create()
            code = asyncio.run(_up(path, folder, Listening(host, ports), Goal(once, timeout), bundle_recorder(bundles)))
    except (StateInUseError, ListenError, InvalidManifestsError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        typer.echo(
            f"{error.strerror or error}: {error.filename or folder.root}; {folder.root} must be a writable folder with "
            "free space: or pass another --state",
            err=True,
        )
        raise typer.Exit(1) from None
    raise typer.Exit(code)


def _wrong_flags(ports: Ports, goal: Goal) -> list[str]:
    """Return the errors of flags that do not fit together."""
    repeated = repeated_port(ports)
    errors = [] if repeated is None else [repeated]
    if goal.timeout_s is not None and not goal.once:
        errors.append("--timeout has an effect only with --once: pass both, or leave out --timeout")
    return errors


async def _up(path: Path, folder: StateFolder, listening: Listening, goal: Goal, record: Record) -> int:
    node = this_machine()
    fleet = LocalFleet(folder, node, listening)
    return await Supervisor(path, folder, node, fleet, _view(Console()), record=record).run(goal)


def _view(console: Console) -> View:
    return TableView(console) if console.is_terminal else LineView(console)
