"""`argosy plan`: place models on nodes, in files or of a cluster, by the operator's own solver. Nothing is changed."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from argosy.api import ServingPool
from argosy.api.conditions import ConditionType, Reason
from argosy.cli.planning.built_plan import final_plan
from argosy.cli.planning.explanation.consolidation import consolidation_document, consolidation_lines
from argosy.cli.planning.explanation.no_replicas import no_replica_lines, no_replicas_document
from argosy.cli.planning.explanation.proofs import proof_lines, proofs_document
from argosy.cli.planning.explanation.reasons import chosen, reason_lines, reasons_document
from argosy.cli.planning.fleet.files import FleetError
from argosy.cli.planning.fleet.options import Fleet, FleetOptions
from argosy.cli.planning.fleet.what_if import nearest
from argosy.cli.planning.picture.plan_picture import plan_picture
from argosy.cli.planning.plan_document import plan_document
from argosy.cli.planning.plan_table import plan_table
from argosy.cli.terminal import console, print_document, refuse, with_options
from argosy.planning.explanation.difference import difference
from argosy.planning.explanation.no_replicas import no_replicas
from argosy.planning.explanation.proof.prove import Proof
from argosy.planning.explanation.proof.prove import prove as prove_plan
from argosy.planning.explanation.reasons import explained_replicas
from argosy.planning.explanation.remedies.find import THOROUGH, find_remedies
from argosy.planning.facts import PoolFacts
from argosy.planning.plan import FleetPlan
from argosy.reconcile import RoundOutcome
from argosy.reconcile.consolidation import recommended
from argosy.snapshot import FleetSnapshot
from argosy.status.advice import advice_on_changes
from argosy.status.findings.unsupported import settings_without_effect

UNPLACED = 2
_PIPE_WIDTH = 140
_PROVE_LIMIT = 30.0


class Output(StrEnum):
    """How the plan is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    SVG = "svg"


Models = Annotated[
    list[str] | None,
    typer.Argument(metavar="[MODEL]...", help="With --explain: the models or ensembles to explain. Default: all."),
]


@with_options(FleetOptions, "fleet_options")
def plan(
    models: Models = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write the plan.")] = Output.TABLE,
    explain: Annotated[bool, typer.Option("--explain", help="Say of each model why it is where it is.")] = False,
    prove: Annotated[
        bool, typer.Option("--prove", help="Search by CP-SAT for a better plan, or prove that there is none.")
    ] = False,
    prove_limit: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="With --prove: effort for each search, about seconds of CPU, the same everywhere. "
            f"Default: {_PROVE_LIMIT:g}.",
        ),
    ] = None,
    *,
    fleet_options: FleetOptions,
) -> None:
    """Show on which GPUs models would be placed, how full each would be, what fits nowhere, and what would change.

    Exit status: 0 if everything is placed, 1 if the input is wrong, 2 if something fits nowhere.
    """
    if prove_limit is not None and not prove:
        refuse(["--prove-limit: limits the search of --prove; add --prove"])
    if explain and output is Output.SVG:
        refuse(["--explain: a picture has no reasons; write the table, json or yaml, or leave the option out"])
    now = datetime.now(UTC)
    fleet = _fleet(fleet_options, now)
    _check_models(models or (), fleet.snapshot, explain)
    outcome, builds = final_plan(fleet.snapshot, now)
    _print_notes(fleet, outcome)
    placed, facts, advice = outcome.plan, outcome.facts, _advice(outcome)
    placed, proofs = _proven(facts, placed, fleet, prove_limit or _PROVE_LIMIT) if prove else (placed, ())
    changes = difference(fleet.running, placed, fleet.nodes) if fleet.running is not None else None
    moves = recommended(fleet.snapshot.resources, facts, placed) if fleet.running is not None else {}
    remedies = find_remedies(facts, placed, THOROUGH, fleet.originals)
    idle = no_replicas(facts, fleet.snapshot.resources)
    explained = chosen(explained_replicas(facts, placed, fleet.running), models or ()) if explain else []
    if output is Output.TABLE:
        console(_PIPE_WIDTH).print(plan_table(placed, facts, builds, advice, changes, remedies))
        without = no_replica_lines(idle, models or ())
        _print_lines([*without, *consolidation_lines(moves), *proof_lines(proofs), *reason_lines(explained)])
    elif output is Output.SVG:
        sys.stdout.write(plan_picture(placed, facts, changes, remedies, moves))
    else:
        document = plan_document(placed, facts, builds, advice, changes, remedies)
        document |= {"withoutReplicas": no_replicas_document(idle)} if idle else {}
        document |= {"consolidation": consolidation_document(moves)} if moves else {}
        document |= {"proofs": proofs_document(proofs)} if prove else {}
        document |= {"explanations": reasons_document(explained)} if explain else {}
        print_document(document, as_json=output is Output.JSON)
    if any(pool.unplaced for pool in placed.pools):
        raise typer.Exit(UNPLACED)


def _proven(
    facts: Sequence[PoolFacts], placed: FleetPlan, fleet: Fleet, limit: float
) -> tuple[FleetPlan, tuple[Proof, ...]]:
    """Return the plan that is best after a search, and what is proven of it."""
    try:
        return prove_plan(facts, placed, limit, fleet.running)
    except ModuleNotFoundError as missing:
        refuse([f"--prove: the search is that of {missing.name}: pip install 'argosy[prove]'"])


def _check_models(models: Sequence[str], snapshot: FleetSnapshot, explain: bool) -> None:
    """Refuse names without --explain, and those that the fleet does not have."""
    if models and not explain:
        refuse([f"{models[0]}: models are named with --explain; manifests with --filename"])
    names = sorted(one.name for one in snapshot.resources if not isinstance(one, ServingPool))
    absent = [name for name in models if name not in names]
    if absent:
        refuse(f"--explain {name}: there is no such model or ensemble{nearest(name, names)}" for name in absent)


def _print_lines(lines: Sequence[str]) -> None:
    if lines:
        console(_PIPE_WIDTH).print(*lines, sep="\n", markup=False, highlight=False)


def _fleet(options: FleetOptions, now: datetime) -> Fleet:
    try:
        return options.fleet(now)
    except FleetError as error:
        refuse(error.problems)


def _print_notes(fleet: Fleet, outcome: RoundOutcome) -> None:
    """Print what the operator would report of nodes and resources: nodes that take nothing new, problems of a
    cluster's resources, and settings that surprise.
    """
    resources = fleet.snapshot.resources
    for line in (
        *fleet.warnings,
        *outcome.problems,
        *settings_without_effect(resources),
        *advice_on_changes(resources, {}),
    ):
        typer.echo(line, err=True)


def _advice(outcome: RoundOutcome) -> dict[str, str]:
    """Return the advice on models' parallelism by the model's identity."""
    valid = {identity: status.condition(ConditionType.VALID) for identity, status in outcome.statuses.items()}
    return {
        identity: condition.message
        for identity, condition in valid.items()
        if condition is not None and condition.reason == Reason.TOPOLOGY_ADVICE
    }
