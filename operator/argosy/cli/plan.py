"""`argosy plan`: where models would sit on given nodes, without a cluster. The solver is the operator's own."""

import json
import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
import yaml

from argosy.api.conditions import ConditionType, Reason
from argosy.cli.foreseen import foreseen
from argosy.cli.nodes import NodesError, read_nodes
from argosy.cli.printing.plan_document import plan_document
from argosy.cli.printing.plan_picture import plan_picture
from argosy.cli.printing.plan_table import plan_table
from argosy.cli.printing.terminal import console, refuse
from argosy.local.manifests.checks import checked
from argosy.local.manifests.reading import read_manifests
from argosy.local.manifests.shapes import local_shapes
from argosy.reconcile import Outcome
from argosy.snapshot import FleetSnapshot
from argosy.status.findings.unsupported import settings_without_effect

UNPLACED = 2
_PIPE_WIDTH = 140
_NO_NODES = (
    "--nodes is required: a plan is made for nodes. Write them to a file with: kubectl get nodes -o yaml > nodes.yaml"
)


class Output(StrEnum):
    """How the plan is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    SVG = "svg"


def plan(
    filename: Annotated[Path, typer.Option("--filename", "-f", help="A manifest, or a folder of them.", exists=True)],
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", help="The nodes, as `kubectl get nodes -o yaml` writes them."),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write the plan.")] = Output.TABLE,
) -> None:
    """Show where models would sit, how full each GPU would be, and what fits nowhere.

    Exit status: 0 if everything has a place, 2 if something has none, 1 if the input is wrong.
    """
    if nodes is None:
        refuse([_NO_NODES])
    manifests = read_manifests(filename)
    shapes = local_shapes(manifests.resources)
    problems = [str(problem) for problem in checked(manifests, shapes).problems]
    try:
        machines = read_nodes(nodes)
    except NodesError as error:
        problems += error.problems
    if problems:
        refuse(problems)
    snapshot = FleetSnapshot(tuple(manifests.resources), tuple(machines), shapes=shapes)
    outcome, builds = foreseen(snapshot, datetime.now(UTC))
    for line in settings_without_effect(manifests.resources):
        typer.echo(line, err=True)
    fleet, facts, advised = outcome.plan, outcome.facts, _advised(outcome)
    if output is Output.TABLE:
        console(_PIPE_WIDTH).print(plan_table(fleet, facts, builds, advised))
    elif output is Output.SVG:
        sys.stdout.write(plan_picture(fleet, facts))
    else:
        document = plan_document(fleet, facts, builds, advised)
        text = json.dumps(document, indent=2) if output is Output.JSON else yaml.safe_dump(document, sort_keys=False)
        sys.stdout.write(text.rstrip("\n") + "\n")
    if any(pool.unplaced for pool in fleet.pools):
        raise typer.Exit(UNPLACED)


def _advised(outcome: Outcome) -> dict[str, str]:
    """What is said of how models are split, by the model's identity."""
    valid = {identity: status.condition(ConditionType.VALID) for identity, status in outcome.statuses.items()}
    return {
        identity: condition.message
        for identity, condition in valid.items()
        if condition is not None and condition.reason == Reason.TOPOLOGY_ADVICE
    }
