"""`argosy up`: serve a folder of manifests on this machine."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from argosy.local.machine import this_machine
from argosy.local.servers.fleet import Listening, LocalFleet
from argosy.local.servers.ports import PortInUseError, Ports
from argosy.local.state import DEFAULT_STATE, StateFolder, StateInUseError
from argosy.local.supervisor import Goal, InvalidManifestsError, Supervisor
from argosy.local.view import view_for


def up(
    path: Annotated[Path, typer.Argument(help="A manifest, or a folder of them.", exists=True)],
    http_port: Annotated[int, typer.Option(help="V2 over HTTP.", min=1, max=65535)] = 8000,
    grpc_port: Annotated[int, typer.Option(help="V2 over gRPC.", min=1, max=65535)] = 8001,
    metrics_port: Annotated[int, typer.Option(help="Prometheus metrics.", min=1, max=65535)] = 8002,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    state: Annotated[Path, typer.Option(help="Where copies of models, logs and statuses are kept.")] = DEFAULT_STATE,
    once: Annotated[bool, typer.Option("--once", help="Wait until everything is Ready, say so, and stop.")] = False,
    timeout: Annotated[float | None, typer.Option(help="With --once: seconds to wait at most.", min=0)] = None,
) -> None:
    """Serve what the manifests declare, on this machine's GPUs or its CPU, and follow their edits.

    What is wrong is named, and holds back nothing else. Ctrl-C drains and stops everything. Exit status: 0, or 1 if
    nothing of the input is right (with --once: if anything is not), a port is taken, or something is not Ready
    (--once); the reasons are printed.
    """
    folder = StateFolder(state.absolute())
    ports = Ports(http_port, grpc_port, metrics_port)
    try:
        with folder.locked():
            folder.create()
            code = asyncio.run(_up(path, folder, Listening(host, ports), Goal(once, timeout)))
    except (StateInUseError, PortInUseError, InvalidManifestsError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        typer.echo(
            f"{error}; {folder.root} must be a folder with room that can be written: or pass another --state", err=True
        )
        raise typer.Exit(1) from None
    raise typer.Exit(code)


async def _up(path: Path, folder: StateFolder, listening: Listening, goal: Goal) -> int:
    node = this_machine()
    fleet = LocalFleet(folder, node, listening)
    return await Supervisor(path, folder, node, fleet, view_for(Console())).run(goal)
