"""`argosy profile`: measure a model's memory, latency and throughput on this machine, and propose its settings."""

import asyncio
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
import yaml

from argosy.bench.profile.points import Sweep
from argosy.bench.profile.proposal import Proposal, propose
from argosy.bench.profile.settings import document, patch
from argosy.cli import plots
from argosy.cli.profile.inputs import Inputs, read_inputs
from argosy.cli.profile.picture import draw
from argosy.cli.profile.tables import no_proposal, tables
from argosy.cli.terminal import Filenames, console, print_document, refuse
from argosy.local.machine import this_machine
from argosy.local.profiling.manifest import Profiled
from argosy.local.profiling.serving import StoppedError
from argosy.local.profiling.sweep import Steps, sweep
from argosy.local.servers.ports import ListenError
from argosy.local.state import StateFolder
from argosy.planning.facts import Node

_PIPE_WIDTH = 120
_INTERRUPTED = 130
_NO_PROPOSAL = 2


class Output(StrEnum):
    """How the result is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    SVG = "svg"


def profile(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model's name in the manifests.")],
    filename: Filenames,
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
) -> None:
    """Measure one model on this machine by batch sizes and instances, and propose its settings and footprint.

    The model is served as by argosy up, and nothing of it is left. Exit status: 0; 1 if the input is wrong or the model
    cannot be served; 2 if no setting keeps the budget; 130 if it was interrupted.
    """
    texts = Inputs(model, filename, batches, instances, latency_budget, shape or [], seconds)
    try:
        profiled, steps, budget, problems = read_inputs(texts)
        problems += plots.errors(plot or Path("-.svg")) if plot is not None or output is Output.SVG else []
        problems += plots.file_errors("--patch", patch_file) if patch_file is not None else []
        if problems or profiled is None:
            refuse(problems)
        node = this_machine()
        measured = asyncio.run(_swept(profiled, steps, node))
    except (KeyboardInterrupt, asyncio.CancelledError, StoppedError):
        typer.echo("interrupted: the server was stopped, and nothing is written", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    except ListenError as error:
        refuse([str(error)])
    _report(profiled, measured, budget, node, output, patch_file, plot)


async def _swept(profiled: Profiled, steps: Steps, node: Node) -> Sweep:
    """Sweep in a folder of its own, with the progress on standard error."""
    with tempfile.TemporaryDirectory(prefix="argosy-profile-") as folder:
        state = StateFolder(Path(folder))
        state.create()
        return await sweep(profiled, steps, node, state, lambda line: typer.echo(line, err=True))


def _report(
    profiled: Profiled,
    measured: Sweep,
    budget: float | None,
    node: Node,
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
    written = None if proposal is None else patch(profiled.model.name, profiled.model.namespace, proposal)
    if patch_file is not None and written is not None:
        patch_file.write_text(yaml.safe_dump(written, sort_keys=False))
    _print(profiled.model.name, measured, proposal, written, node, output)
    if proposal is None:
        typer.echo(no_proposal(measured, budget), err=True)
        raise typer.Exit(_NO_PROPOSAL)


def _print(
    name: str,
    measured: Sweep,
    proposal: Proposal | None,
    written: dict[str, object] | None,
    node: Node,
    output: Output,
) -> None:
    match output:
        case Output.TABLE:
            console(_PIPE_WIDTH).print(tables(f"{name} on {node.product or node.name}", measured, proposal))
        case Output.JSON:
            print_document(document(measured, proposal), as_json=True)
        case Output.SVG:
            draw(sys.stdout.buffer, measured, proposal)
        case Output.YAML if written is not None:
            print_document(written, as_json=False)
