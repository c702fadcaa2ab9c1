"""`argosy simulate`: what a policy would do with a trace of requests, before it is trusted with real ones."""

import json
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from argosy.api import InferenceModel
from argosy.api.values.quantity import parse_duration
from argosy.cli.curves import Curve, CurvesError, read_curves
from argosy.cli.printing.simulation import documents, picture, tables
from argosy.cli.printing.terminal import console, refuse
from argosy.cli.workloads import Asked, asked, wrong_other
from argosy.local.manifests.reading import read_manifests
from argosy.simulation.autoscalers.autoscaler import Autoscaling
from argosy.simulation.member import Workload
from argosy.simulation.simulate import Fleet
from argosy.simulation.simulate import simulate as simulated
from argosy.simulation.tracefiles import TraceError, read_trace
from argosy.simulation.traces import Trace

_PIPE_WIDTH = 140
OURS = "argosy"


class Output(StrEnum):
    """How the outcome is written."""

    TABLE = "table"
    JSON = "json"


def simulate(
    filename: Annotated[Path, typer.Option("--filename", "-f", help="A manifest, or a folder of them.", exists=True)],
    trace: Annotated[list[Path], typer.Option("--trace", "-t", help="CSV: time, and model, prompt, output.")],
    service: Annotated[Path, typer.Option("--service", "-s", help="YAML: how long each model takes.")],
    gpus: Annotated[float | None, typer.Option("--gpus", help="GPUs of the fleet. Default: any number.", min=0)] = None,
    startup: Annotated[str, typer.Option("--startup", help="How long a new replica takes, such as 30s.")] = "30s",
    beside: Annotated[
        list[str] | None,
        typer.Option("--beside", "-b", help="hpa, keda or kpa to compare with, or with a target: hpa=0.6."),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write the outcome.")] = Output.TABLE,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw replicas, queue and latency over time: .png or .svg.")
    ] = None,
) -> None:
    """Try a policy: a trace of requests against a simulated fleet, scaled by the operator's own decisions.

    Exit status: 0, or 1 if the input is wrong.
    """
    others = beside or []
    problems = [problem for other in others if (problem := wrong_other(other))]
    problems += [] if plot is None else picture.wrong(plot)
    found, more = _read(filename, trace, service, startup)
    if problems + more:
        refuse(problems + more)
    outcomes = {who: simulated(_pairs(found, who), Fleet(gpus)) for who in (OURS, *others)}
    if plot is not None:
        picture.draw(plot, outcomes, [each.workload.budget_s for each in found])
    if output is Output.JSON:
        sys.stdout.write(json.dumps(documents.document(outcomes), indent=2) + "\n")
    else:
        console(_PIPE_WIDTH).print(tables.tables(outcomes, found))


def _pairs(found: list[Asked], who: str) -> list[tuple[Workload, Autoscaling]]:
    return [(each.workload, each.autoscaling(who)) for each in found]


def _read(filename: Path, files: list[Path], service: Path, startup: str) -> tuple[list[Asked], list[str]]:
    """What is simulated, and everything that is wrong with the input."""
    manifests = read_manifests(filename)
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
    traces, unread = _traces(files)
    problems += unread
    if problems:
        return [], problems
    models = [each for each in manifests.resources if isinstance(each, InferenceModel)]
    return asked(models, traces, curves, startup_s)


def _traces(files: list[Path]) -> tuple[dict[str, Trace], list[str]]:
    """By model. A file without a column model is of the model that it is named after, if there are several files."""
    traces: dict[str, Trace] = {}
    problems = []
    for file in files:
        try:
            for model, trace in read_trace(file.read_text(), str(file)).items():
                name = model or (file.stem if len(files) > 1 else "")
                if name in traces:
                    problems.append(f"{file}: has requests for {name or 'no model'}, as a file before it has")
                traces[name] = replace(trace, name=name or file.stem)
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{file}: cannot be read: {error}")
        except TraceError as error:
            problems.append(str(error))
    return traces, problems
