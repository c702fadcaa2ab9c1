"""`argosy render`: write the model repositories of a plan, which NVIDIA's server and Argosy's own can serve."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from argosy.cli.planning.built_plan import built_plan
from argosy.cli.planning.fleet.nodes import NodesError, read_nodes
from argosy.cli.planning.plan_table import unplaced_lines
from argosy.cli.terminal import Filenames, refuse
from argosy.local.export import ExportError, NotOursError, export
from argosy.local.machine import this_machine
from argosy.local.manifests.checks import checked, local_shapes
from argosy.local.manifests.reading import read_manifests
from argosy.local.manifests.this_machine import for_this_machine
from argosy.local.state import DEFAULT_STATE
from argosy.planning.facts import Node
from argosy.reconcile import RoundOutcome
from argosy.snapshot import FleetSnapshot
from argosy.status.findings.unsupported import settings_without_effect
from argosy_agent.contract import RenderedRepository

UNPLACED = 2
_NOT_BUILT = "nothing is built here, so its files are not there: use --config-only, or serve it with argosy up"


def render(
    filename: Filenames,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write; an earlier result there is replaced.")
    ],
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", help="Nodes from `kubectl get nodes -o yaml`. Default: this machine."),
    ] = None,
    config_only: Annotated[
        bool,
        typer.Option(
            "--config-only", help="Write configurations and empty version folders only, without fetching model files."
        ),
    ] = False,
) -> None:
    """Write a model repository for every server of the plan: config.pbtxt, and the files of each version.

    Exit status: 0 if everything is placed, 1 if the input is wrong (nothing is written), 2 if something fits nowhere.
    """
    try:
        outcome = _outcome(filename, nodes, config_only)
        export(_repositories(outcome), output, with_files=not config_only)
    except (ExportError, NotOursError) as error:
        refuse([str(error)])
    for pool in outcome.plan.pools:
        for server in pool.servers:
            typer.echo(f"{server.name}: {len(server.placements)} models, in {output / server.name}")
    unplaced = unplaced_lines(outcome.plan)
    for line in unplaced:
        typer.echo(line, err=True)
    if unplaced:
        raise typer.Exit(UNPLACED)


def _outcome(filename: list[Path], nodes: Path | None, config_only: bool) -> RoundOutcome:
    manifests, machines = read_manifests(*filename), _machines(nodes)
    unused = settings_without_effect(manifests.resources)
    if nodes is None:
        here = for_this_machine(manifests.resources, _gpus(machines[0]), (DEFAULT_STATE / "engines").absolute())
        manifests = replace(manifests, resources=here)
    shapes = local_shapes(manifests.resources)
    if problems := checked(manifests, shapes).problems:
        refuse(map(str, problems))
    for line in unused:
        typer.echo(line, err=True)
    outcome, builds = built_plan(FleetSnapshot(manifests.resources, machines, shapes=shapes), datetime.now(UTC))
    if builds and not config_only:
        models = sorted({owner for build in builds for owner in build.owners})
        refuse(f"{model}: spec.engine: {_NOT_BUILT}" for model in models)
    return outcome


def _gpus(node: Node) -> int:
    return sum(not gpu.is_cpu for gpu in node.gpus)


def _repositories(outcome: RoundOutcome) -> list[RenderedRepository]:
    return [step.repository for steps in outcome.steps.values() for step in steps]


def _machines(nodes: Path | None) -> tuple[Node, ...]:
    if nodes is None:
        return (this_machine(),)
    try:
        machines = read_nodes(nodes)
    except NodesError as error:
        refuse(error.problems)
    for line in machines.warnings:
        typer.echo(line, err=True)
    return machines.nodes
