"""The options of `argosy plan` that say which fleet is planned, and what is tried with it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from argosy.cli.planning.built_plan import built_plan
from argosy.cli.planning.fleet.files import FleetError, files_snapshot, with_servers, with_servers_of
from argosy.cli.planning.fleet.nodes import faults_of
from argosy.cli.planning.fleet.what_if import NO_MANIFESTS, Changes, changed
from argosy.local.manifests.reading import read_manifests
from argosy.planning.explanation.difference import Running
from argosy.planning.facts import Node
from argosy.snapshot import FleetSnapshot

_FILES, _CLUSTER, _WHAT_IF = "A fleet in files", "The fleet of a cluster", "What if"
_NO_NODES = (
    "--nodes is required: a plan is made for nodes. Write them to a file with: kubectl get nodes -o yaml > nodes.yaml"
)
_NO_FLEET = "--filename or --cluster is required: name manifests, or plan what a cluster has"


@dataclass(frozen=True, slots=True)
class Fleet:
    """The fleet to plan. `running`: the servers that the plan is compared with; None where nothing runs. `warnings`: of
    nodes that take nothing new. `originals`: nodes that are tried, each with the node that it is a copy of. `nodes`:
    those before and after what is tried.
    """

    snapshot: FleetSnapshot
    running: Running | None = None
    warnings: tuple[str, ...] = ()
    originals: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """The values of these options."""

    filename: Annotated[
        list[Path] | None,
        typer.Option(
            "--filename", "-f", help="A manifest, or a folder of them; may be repeated.", rich_help_panel=_FILES
        ),
    ] = None
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", help="The nodes, as `kubectl get nodes -o yaml` writes them.", rich_help_panel=_FILES),
    ] = None
    running: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A plan that `-o json` wrote: its servers run, and the plan starts from them. Default: nothing runs.",
            rich_help_panel=_FILES,
        ),
    ] = None
    cluster: Annotated[
        bool,
        typer.Option(
            "--cluster",
            help="Plan the resources, nodes and servers of a cluster. Nothing is written.",
            rich_help_panel=_CLUSTER,
        ),
    ] = False
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            "-n",
            help="A namespace that the operator watches; may be repeated. Default: all.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="How to reach the cluster. Default: as kubectl.", exists=True, rich_help_panel=_CLUSTER),
    ] = None
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig.", rich_help_panel=_CLUSTER)] = None
    add: Annotated[
        list[Path] | None,
        typer.Option(
            help="Manifests to add; a resource that is there already takes its place. May be repeated.",
            rich_help_panel=_WHAT_IF,
        ),
    ] = None
    remove: Annotated[
        list[str] | None,
        typer.Option(
            help="A resource to take away: NAME, NAMESPACE/NAME or KIND/NAME. May be repeated.",
            rich_help_panel=_WHAT_IF,
        ),
    ] = None
    without_node: Annotated[
        list[str] | None, typer.Option(help="A node to take away. May be repeated.", rich_help_panel=_WHAT_IF)
    ] = None
    with_node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE[=COUNT]",
            help="Nodes to add: of a GPU product or instance type that the fleet has, or like the node of this name. "
            "May be repeated.",
            rich_help_panel=_WHAT_IF,
        ),
    ] = None

    def fleet(self, now: datetime) -> Fleet:
        """Return the fleet. Raises FleetError.

        Where nothing runs and something is tried, the plan of the fleet without it counts as what runs.
        """
        if problems := list(self._contradictions()):
            raise FleetError(problems)
        add = read_manifests(*self.add) if self.add else NO_MANIFESTS
        tried = Changes(add, tuple(self.remove or ()), tuple(self.without_node or ()), tuple(self.with_node or ()))
        snapshot, warnings = self._snapshot()
        if not (self.cluster or self.running or tried.is_empty):
            snapshot = _carried_out(snapshot, now)
        running = {key: pool.servers for key, pool in snapshot.pools.items()}
        compared = self.cluster or self.running or not tried.is_empty
        after = changed(snapshot, tried)
        nodes = (*snapshot.nodes, *after.snapshot.nodes)
        return Fleet(after.snapshot, running if compared else None, warnings, after.originals, nodes)

    def _snapshot(self) -> tuple[FleetSnapshot, tuple[str, ...]]:
        """Return the fleet as it is, and warnings of its nodes. Raises FleetError."""
        if self.cluster:
            snapshot = _of_cluster(self.kubeconfig, self.context, self.namespace or ())
            return snapshot, faults_of(snapshot.nodes)
        if self.nodes is None:
            raise FleetError([_NO_NODES])
        snapshot, warnings = files_snapshot(self.filename or (), self.nodes)
        return with_servers_of(snapshot, self.running) if self.running is not None else snapshot, warnings

    def _contradictions(self) -> Iterator[str]:
        """Yield what is wrong with these options together."""
        of_files = {"--filename": self.filename, "--nodes": self.nodes, "--from": self.running}
        of_cluster = {"--namespace": self.namespace, "--kubeconfig": self.kubeconfig, "--context": self.context}
        if self.cluster:
            for name in (name for name, value in of_files.items() if value):
                yield f"{name}: --cluster has the whole fleet; leave one of the two out, or try more with --add"
        else:
            for name in (name for name, value in of_cluster.items() if value):
                yield f"{name}: is for a cluster; add --cluster"
            if not self.filename:
                yield _NO_FLEET


def _carried_out(snapshot: FleetSnapshot, now: datetime) -> FleetSnapshot:
    """Return the fleet in which the servers of its plan run."""
    plan = built_plan(snapshot, now)[0].plan
    return with_servers(snapshot, {pool.pool: pool.current for pool in plan.pools})


def _of_cluster(kubeconfig: Path | None, context: str | None, namespaces: list[str] | tuple[str, ...]) -> FleetSnapshot:
    try:
        from argosy.cli.planning.fleet.cluster import cluster_snapshot
    except ModuleNotFoundError as missing:
        raise FleetError([f"a cluster is reached by {missing.name}: pip install 'argosy[operator]'"]) from missing
    return cluster_snapshot(kubeconfig, context, namespaces)
