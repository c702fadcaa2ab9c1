"""`argosy profile`: measure a model's memory, latency and throughput, and propose its settings."""

import asyncio
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from argosy.bench.profile.points import Sweep
from argosy.bench.profile.proposal import Proposal, propose
from argosy.bench.profile.settings import document, patch
from argosy.cli import plots
from argosy.cli.profile.inputs import Inputs, read_inputs
from argosy.cli.profile.job import JobError
from argosy.cli.profile.picture import draw
from argosy.cli.profile.tables import no_proposal, tables
from argosy.cli.profile.where import Where
from argosy.cli.terminal import console, print_document, refuse, with_options
from argosy.local.profiling.manifest import Profiled
from argosy.local.profiling.serving import StoppedError
from argosy.local.servers.ports import ListenError

_PIPE_WIDTH = 120
_INTERRUPTED = 130
_NO_PROPOSAL = 2


class Output(StrEnum):
    """How the result is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    SVG = "svg"


@with_options(Where, "where")
def profile(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model's name in the manifests.")],
    filename: Annotated[
        list[Path] | None,
        typer.Option(
            "--filename",
            "-f",
            help="A manifest, or a folder of them; may be repeated. Default with --job: the cluster's.",
        ),
    ] = None,
    batches: Annotated[
        str | None,
        typer.Option("--batches", "-b", help="Sizes of batches. Default: 1, 2, 4 … up to the model's maxBatchSize."),
    ] = None,
    instances: Annotated[str, typer.Option("--instances", "-i", help="Numbers of instances.")] = "1,2",
    latency_budget: Annotated[
        str | None, typer.Option("--latency-budget", help="The longest that a request may take: 50ms. Default: any.")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", help="Sizes of a row of an input that leaves some open: ids=128; may be repeated."),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.05, max=600, help="How long a point is measured.")] = 1.0,
    patch_file: Annotated[
        Path | None, typer.Option("--patch", help="Write the proposal there, as a patch of the manifest for Git.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the curve there: .png or .svg.")] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to write the result; yaml: the patch; svg: the curve.")
    ] = Output.TABLE,
    *,
    where: Where,
) -> None:
    """Measure one model by batch sizes and instances, and propose its settings and footprint.

    The model is served on this machine, as by argosy up, or with --job in a cluster, and nothing of it is left. Exit
    status: 0; 1 if the input is wrong or the model cannot be served; 2 if no setting keeps the budget; 130 if it was
    interrupted.
    """
    texts = Inputs(model, filename or [], batches, instances, latency_budget, shape or [], seconds)
    try:
        profiled, steps, budget, problems = read_inputs(texts, where.resources(model, filename or []))
        problems += where.problems(filename or [])
        problems += plots.errors(plot or Path("-.svg")) if plot is not None or output is Output.SVG else []
        problems += plots.file_errors("--patch", patch_file) if patch_file is not None else []
        if problems or profiled is None:
            refuse(problems)
        measured = where.measure(profiled, steps, lambda line: typer.echo(line, err=True))
    except (KeyboardInterrupt, asyncio.CancelledError, StoppedError):
        typer.echo("interrupted: the server was stopped, and nothing is written", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    except (ListenError, JobError) as error:
        refuse([str(error)])
    _report(profiled, measured.sweep, budget, measured.machine, output, patch_file, plot)


def _report(
    profiled: Profiled,
    measured: Sweep,
    budget: float | None,
    machine: str,
    output: Output,
    patch_file: Path | None,
    plot: Path | None,
) -> None:
    proposal = propose(measured, budget)
    for failure in measured.failures:
        typer.echo(str(failure), err=True)
    if not measured.points:
        raise typer.Exit(1)
    if plot is not None:
        draw(plot, measured, proposal)
    written = None if proposal is None else patch(profiled.model, proposal)
    if patch_file is not None and written is not None:
        patch_file.write_text(yaml.safe_dump(written, sort_keys=False))
    _print(profiled, measured, proposal, written, machine, output)
    if proposal is None:
        typer.echo(no_proposal(measured, budget), err=True)
        raise typer.Exit(_NO_PROPOSAL)


def _print(
    profiled: Profiled,
    measured: Sweep,
    proposal: Proposal | None,
    written: dict[str, Any] | None,
    machine: str,
    output: Output,
) -> None:
    match output:
        case Output.TABLE:
            settings = written["spec"] if written is not None else None
            console(_PIPE_WIDTH).print(tables(f"{profiled.model.name} on {machine}", measured, proposal, settings))
        case Output.JSON:
            print_document(document(measured, proposal, takes_batches=profiled.takes_batches), as_json=True)
        case Output.SVG:
            draw(sys.stdout.buffer, measured, proposal)
        case Output.YAML if written is not None:
            print_document(written, as_json=False)
