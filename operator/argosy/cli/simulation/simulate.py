"""`argosy simulate`: try a scaling policy on a trace of requests before it serves real ones."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from argosy.api import InferenceModel
from argosy.api.values.quantity import parse_duration
from argosy.cli import plots
from argosy.cli.simulation import documents, picture, tables
from argosy.cli.simulation.curves import Curve, CurvesError, read_curves
from argosy.cli.simulation.traces import read_traces
from argosy.cli.simulation.workloads import Simulated, other_error, simulated_models
from argosy.cli.terminal import Filenames, console, print_document, refuse
from argosy.local.manifests.reading import read_manifests
from argosy.simulation.autoscalers.autoscaler import Autoscaling
from argosy.simulation.member import Workload
from argosy.simulation.simulate import Fleet
from argosy.simulation.simulate import simulate as run

_PIPE_WIDTH = 140
OURS = "argosy"


class Output(StrEnum):
    """How the result is written."""

    TABLE = "table"
    JSON = "json"


def simulate(
    filename: Filenames,
    trace: Annotated[
        list[Path],
        typer.Option(
            "--trace", "-t", help="A CSV file with the columns time, and model, prompt, output; may be repeated."
        ),
    ],
    service: Annotated[
        Path, typer.Option("--service", "-s", help="A YAML file that says how long executions of each model take.")
    ],
    gpus: Annotated[float | None, typer.Option("--gpus", help="GPUs of the fleet. Default: any number.")] = None,
    startup: Annotated[str, typer.Option("--startup", help="How long a new replica takes, such as 30s.")] = "30s",
    autoscalers: Annotated[
        list[str] | None,
        typer.Option(
            "--beside", "-b", help="Compare with hpa, keda or kpa, or one with a target, as hpa=0.6; may be repeated."
        ),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write the result.")] = Output.TABLE,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw replicas, queue and latency over time: .png or .svg.")
    ] = None,
) -> None:
    """Simulate a fleet that serves a trace of requests, scaled by the operator's own decisions.

    Exit status: 0, or 1 if the input is wrong.
    """
    others = autoscalers or []
    problems = [problem for other in others if (problem := other_error(other))]
    problems += [] if plot is None else plots.errors(plot)
    models, more = _read(filename, trace, service, startup)
    problems += [] if gpus is None else _too_few(gpus, models)
    if problems + more:
        refuse(problems + more)
    for model in models:
        if model.ignored:
            typer.echo(f"InferenceModel {model.workload.name}: not simulated: {', '.join(model.ignored)}", err=True)
    outcomes = {scaler: run(_members(models, scaler), Fleet(gpus)) for scaler in (OURS, *others)}
    if plot is not None:
        picture.draw(plot, outcomes, [model.workload.budget_s for model in models])
    if output is Output.JSON:
        print_document(documents.document(outcomes), as_json=True)
    else:
        console(_PIPE_WIDTH).print(tables.tables(outcomes, models))


def _too_few(gpus: float, models: list[Simulated]) -> list[str]:
    """Return the error if a fleet of this size cannot run the models' first replicas."""
    starts = sum(model.workload.start.replicas * model.workload.gpus for model in models)
    least = max([1.0, starts, *(model.workload.gpus for model in models)])
    if gpus >= least:
        return []
    return [f"--gpus {gpus:g}: the models' first replicas take {least:g}; pass {least:g} or more"]


def _members(models: list[Simulated], scaler: str) -> list[tuple[Workload, Autoscaling]]:
    return [(model.workload, model.autoscaling(scaler)) for model in models]


def _read(filenames: list[Path], files: list[Path], service: Path, startup: str) -> tuple[list[Simulated], list[str]]:
    """Return what is simulated, and every error of the input."""
    manifests = read_manifests(*filenames)
    problems = [*map(str, manifests.problems)]
    curves: dict[str, Curve] = {}
    startup_s = 0.0
    try:
        curves = read_curves(service)
        startup_s = parse_duration(startup) / 1000
    except CurvesError as error:
        problems.append(f"--service {error}")
    except ValueError as error:
        problems.append(f"--startup: {error}")
    traces, unread = read_traces(files)
    problems += unread
    if problems:
        return [], problems
    models = [resource for resource in manifests.resources if isinstance(resource, InferenceModel)]
    return simulated_models(models, traces, curves, startup_s)
