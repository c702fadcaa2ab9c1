"""`argosy replay`: decide the round of a bundle again, without a cluster, and compare the decisions."""

import json
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.api.crd.crds import DEFINITIONS
from argosy.cli import plots
from argosy.cli.planning import replay_picture
from argosy.cli.planning.evidence_report import evidence_lines
from argosy.cli.terminal import Output, print_document, refuse
from argosy.local.printing import table
from argosy.local.resources import documents
from argosy.replay.bundle import Bundle
from argosy.replay.codec import DocumentError, encoded
from argosy.replay.decisions import Replay, replayed
from argosy.replay.differences import ABSENT, Difference
from argosy.replay.folder import read_bundle
from argosy.replay.readings import CandidateReplay
from argosy_common.wording import shortened

DIFFERS = 2
_MOST_SHOWN = 20
_LONGEST_VALUE = 100


def replay(
    bundle: Annotated[
        Path,
        typer.Argument(help="A file that `argosy operator --bundles` or `argosy up --bundles` wrote.", exists=True),
    ],
    output: Annotated[
        Output,
        typer.Option("--output", "-o", help="table: what differs, and the statuses; json, yaml: with all decisions."),
    ] = Output.TABLE,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the evidence over time against its limits into this .svg or .png file.")
    ] = None,
) -> None:
    """Decide a recorded round again, and show where the decision is another one than the recorded.

    Of a candidate that was being proven, its readings are judged again, too: the table says at which reading each
    measurement turned. It reads nothing but the file, and changes nothing.

    Exit status: 0 if the decision is the same, 1 if the file is no bundle, 2 if the decision differs.
    """
    if plot is not None and (faults := plots.errors(plot)):
        refuse(faults)
    try:
        recorded = read_bundle(bundle)
    except (DocumentError, OSError) as error:
        refuse([f"{bundle}: {error}"])
    again = replayed(recorded)
    if plot is not None:
        if not again.candidates:
            refuse([f"{bundle}: has no readings, as no candidate was being proven then: --plot has nothing to draw"])
        replay_picture.draw(plot, again.candidates)
    if output is Output.TABLE:
        for line in _lines(recorded, again):
            typer.echo(line)
    else:
        print_document(_document(recorded, again), as_json=output is Output.JSON)
    if not again.is_same:
        raise typer.Exit(DIFFERS)


def _lines(recorded: Bundle, again: Replay) -> Iterator[str]:
    """Yield the report for people: the round, its statuses, and what differs."""
    snapshot, here = recorded.snapshot, version("argosy")
    pools = ", ".join(snapshot.pools) or "no pool"
    yield f"A round of {pools} at {recorded.now.isoformat()}, argosy {recorded.release}"
    if recorded.release != here:
        yield f"This is argosy {here}: where the decision differs, the other release may be why"
    if recorded.redacted:
        yield f"Taken out as secrets: {shortened(', '.join(recorded.redacted), 2 * _LONGEST_VALUE)}"
    if recorded.error:
        yield f"The round ended with {recorded.error}"
    yield ""
    yield from _statuses(recorded, recorded.now)
    for candidate in again.candidates:
        yield from evidence_lines(candidate)
        yield ""
    if again.error and again.error != recorded.error:
        yield f"The round now ends with {again.error}"
    if again.is_same:
        yield "The decision is the same."
        return
    yield f"The decision differs in {len(again.differences)} fields:"
    for difference in again.differences[:_MOST_SHOWN]:
        yield f"  {difference.path}: {_value(difference.recorded)} -> {_value(difference.replayed)}"
    if len(again.differences) > _MOST_SHOWN:
        yield f"  and {len(again.differences) - _MOST_SHOWN} more: -o json"


def _statuses(recorded: Bundle, now: datetime) -> Iterator[str]:
    """Yield the resources as kubectl would have printed them before the round."""
    snapshot = recorded.snapshot
    every = documents((*snapshot.resources, *snapshot.faulty), snapshot.statuses)
    for definition in DEFINITIONS:
        bodies = [body for body in every if body["kind"] == definition.kind.__name__]
        if bodies:
            yield from table(definition, bodies, False, now)
            yield ""


def _value(value: Any) -> str:
    return "absent" if value is ABSENT else shortened(json.dumps(value), _LONGEST_VALUE)


def _document(recorded: Bundle, again: Replay) -> dict[str, Any]:
    return {
        "release": recorded.release,
        "now": recorded.now.isoformat(),
        "redacted": list(recorded.redacted),
        "error": again.error,
        "evidence": [_evidence(candidate) for candidate in again.candidates],
        "differences": [_difference(difference) for difference in again.differences],
        "decisions": again.decisions,
    }


def _evidence(candidate: CandidateReplay) -> dict[str, Any]:
    return {
        "member": candidate.member,
        "readings": len(candidate.judgements),
        "verdict": encoded(candidate.verdict),
        "turns": [encoded(turn) for turn in candidate.turns],
    }


def _difference(difference: Difference) -> dict[str, Any]:
    values = {"recorded": difference.recorded, "replayed": difference.replayed}
    return {"path": difference.path, **{name: value for name, value in values.items() if value is not ABSENT}}
