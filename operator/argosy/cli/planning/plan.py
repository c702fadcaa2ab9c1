"""`argosy plan`: place models on given nodes without a cluster, by the operator's own solver."""

import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from argosy.api.conditions import ConditionType, Reason
from argosy.cli.planning.built_plan import built_plan
from argosy.cli.planning.nodes import NodesError, read_nodes
from argosy.cli.planning.plan_document import plan_document
from argosy.cli.planning.plan_picture import plan_picture
from argosy.cli.planning.plan_table import plan_table
from argosy.cli.terminal import Filenames, console, print_document, refuse
from argosy.local.manifests.checks import checked, local_shapes
from argosy.local.manifests.reading import read_manifests
from argosy.reconcile import RoundOutcome
from argosy.snapshot import FleetSnapshot
from argosy.status.advice import advice_on_changes
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
    filename: Filenames,
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", help="The nodes, as `kubectl get nodes -o yaml` writes them."),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write the plan.")] = Output.TABLE,
) -> None:
    """Show on which GPUs models would be placed, how full each would be, and what fits nowhere.

    Exit status: 0 if everything is placed, 1 if the input is wrong, 2 if something fits nowhere.
    """
    if nodes is None:
        refuse([_NO_NODES])
    manifests = read_manifests(*filename)
    shapes = local_shapes(manifests.resources)
    problems = [str(problem) for problem in checked(manifests, shapes).problems]
    try:
        machines = read_nodes(nodes)
    except NodesError as error:
        problems += error.problems
    if problems:
        refuse(problems)
    snapshot = FleetSnapshot(tuple(manifests.resources), tuple(machines), shapes=shapes)
    outcome, builds = built_plan(snapshot, datetime.now(UTC))
    notes = [*settings_without_effect(manifests.resources), *advice_on_changes(manifests.resources, {})]
    for line in notes:
        typer.echo(line, err=True)
    fleet, facts, advice = outcome.plan, outcome.facts, _advice(outcome)
    if output is Output.TABLE:
        console(_PIPE_WIDTH).print(plan_table(fleet, facts, builds, advice))
    elif output is Output.SVG:
        sys.stdout.write(plan_picture(fleet, facts))
    else:
        print_document(plan_document(fleet, facts, builds, advice), as_json=output is Output.JSON)
    if any(pool.unplaced for pool in fleet.pools):
        raise typer.Exit(UNPLACED)


def _advice(outcome: RoundOutcome) -> dict[str, str]:
    """Return the advice on models' parallelism by the model's identity."""
    valid = {identity: status.condition(ConditionType.VALID) for identity, status in outcome.statuses.items()}
    return {
        identity: condition.message
        for identity, condition in valid.items()
        if condition is not None and condition.reason == Reason.TOPOLOGY_ADVICE
    }
