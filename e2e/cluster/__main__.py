"""`python -m e2e.cluster up|down|status`."""

import time
from pathlib import Path
from typing import Annotated

import typer

from e2e.cluster.access import Access
from e2e.cluster.cluster import HOME, Cluster, existing
from e2e.cluster.errors import ClusterError, ClusterUnavailableError

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
Folder = Annotated[Path | None, typer.Option(help="Its state's folder, instead of a name.")]
Name = Annotated[str, typer.Option(help=f"Which cluster; its state lies in {HOME}/NAME.")]


@app.command()
def up(
    name: Name = "default",
    folder: Folder = None,
    control_plane: Annotated[
        bool, typer.Option("--control-plane", help="No node; API server, scheduler and controllers.")
    ] = False,
    build: Annotated[
        bool, typer.Option("--build", help="Build Kubernetes from Debian's sources if it is found nowhere.")
    ] = False,
) -> None:
    """Start a cluster, or find it running. With ARGOSY_E2E_EXISTING=1 only check the cluster of KUBECONFIG."""
    start = time.monotonic()

    def progress(line: str) -> None:
        typer.echo(f"{time.monotonic() - start:6.1f} s  {line}")

    cluster: Access | None = existing()
    if cluster is not None:
        progress("the cluster of KUBECONFIG answers")
    elif control_plane:
        cluster = Cluster.control_plane(folder, name=name, build=build, progress=progress)
    else:
        cluster = Cluster.with_node(folder, name=name, build=build, progress=progress)
    typer.echo(f"export KUBECONFIG={cluster.kubeconfig}")


@app.command()
def down(name: Name = "default", folder: Folder = None) -> None:
    """End the cluster's processes and remove its data; the logs stay."""
    cluster = Cluster.attach(folder, name=name)
    if cluster is None:
        typer.echo(f"no cluster in {folder or HOME / name}")
        return
    cluster.down()
    typer.echo(f"{cluster.folder} is down; its logs are in {cluster.folder / 'logs'}")


@app.command()
def status(name: Name = "default", folder: Folder = None) -> None:
    """Show each process and the nodes."""
    cluster = Cluster.attach(folder, name=name)
    if cluster is None:
        typer.echo(f"no cluster in {folder or HOME / name}")
        raise typer.Exit(1)
    for process, alive in cluster.status():
        typer.echo(f"{process.name:24} {process.pid:>8} {'running' if alive else 'ended':8} {process.log}")
    if cluster.ready():
        typer.echo(cluster.kubectl("get", "nodes", "-o", "wide").rstrip() or "no nodes")
    typer.echo(f"export KUBECONFIG={cluster.kubeconfig}")


def main() -> None:
    """Run the command; a cluster that cannot be had is one line on stderr and exit status 1."""
    try:
        app()
    except (ClusterError, ClusterUnavailableError) as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()
