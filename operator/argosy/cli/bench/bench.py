"""`argosy bench`: the controlled load test."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from argosy.api.values.times import timestamp
from argosy.bench.load.client import EndpointError
from argosy.bench.load.run import Progress, Run, Settings, run
from argosy.bench.results import Endpoint, Method, Results, document, schema
from argosy.bench.summary import limits, results
from argosy.bench.variants.crossovers import crossover_patch, measured_variants
from argosy.bench.work import Api, Work
from argosy.cli import plots
from argosy.cli.bench import inputs, picture
from argosy.cli.bench.tables import tables, warnings
from argosy.cli.terminal import console, print_document, refuse

_PIPE_WIDTH = 150


class Output(StrEnum):
    """How the result is written."""

    TABLE = "table"
    JSON = "json"
    PATCH = "patch"


def bench(
    endpoints: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=]URL...", help="Endpoints to measure, in alternation.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="The model, or NAME=MODEL for one endpoint; default: its only one."),
    ] = None,
    api: Annotated[Api, typer.Option("--api", help="Route of the requests.")] = Api.COMPLETIONS,
    prompt_tokens: Annotated[int, typer.Option("--prompt-tokens", min=1, help="Tokens of each prompt.")] = 256,
    output_tokens: Annotated[int, typer.Option("--output-tokens", min=1, help="Tokens of each answer.")] = 64,
    concurrency: Annotated[
        str | None,
        typer.Option("--concurrency", "-c", help=f"Closed loop: requests in flight. Default: {inputs.SWEEP}."),
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", "-r", help="Open loop: Poisson arrivals a second, as 0.5,2,8.")
    ] = None,
    requests: Annotated[int, typer.Option("--requests", min=2, help="Measured requests of a trial, at least.")] = 32,
    repetitions: Annotated[int, typer.Option("--repetitions", min=1, help="Trials of an endpoint at a level.")] = 4,
    budget: Annotated[
        list[str] | None,
        typer.Option("--budget", "-b", help="For goodput: ttft=200ms, tpot=50ms or latency=5s; may be repeated."),
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option("--tokenizer", help="The model's folder. Default: count by the endpoint's usage.")
    ] = None,
    api_key_file: Annotated[Path | None, typer.Option("--api-key-file", help="File with the API key.")] = None,
    timeout: Annotated[str, typer.Option("--timeout", help="How long a request may take.")] = "5m",
    hardware: Annotated[
        str | None, typer.Option("--hardware", help="What the endpoints run on, for the record: '1x H100'.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of prompts and arrivals.")] = 0,
    output: Annotated[
        Output,
        typer.Option("--output", "-o", help="How to write the result; patch: the crossovers of a model's variants."),
    ] = Output.TABLE,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw latency against throughput: .png or .svg.")] = None,
    print_schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of -o json, and end.")] = False,
) -> None:
    """Measure endpoints of OpenAI's API under the same load, and where the better one changes.

    Exit status: 0; 1 if the input is wrong or an endpoint does not answer; 2 if some results cannot be compared.
    """
    if print_schema:
        print_document(schema(), as_json=True)
        return
    problems = inputs.Problems()
    targets = inputs.read_targets(endpoints or [], model or [], api_key_file, problems)
    if not endpoints:
        problems.append("name at least one endpoint, such as http://localhost:8000")
    settings = Settings(
        targets=targets,
        work=Work(prompt_tokens, output_tokens, api),
        levels=inputs.read_levels(concurrency, rate, problems),
        requests=requests,
        repetitions=repetitions,
        seed=seed,
        budget=inputs.read_budget(budget or [], problems),
        tokenizer=tokenizer,
        timeout_s=inputs.read_timeout(timeout, problems),
    )
    inputs.check_tokenizer(tokenizer, problems)
    if output is Output.PATCH:
        inputs.check_patch(targets, hardware, problems)
    problems += [] if plot is None else plots.errors(plot)
    if problems:
        refuse(problems)
    _report(_run(settings, hardware), output, plot)


def _run(settings: Settings, hardware: str | None) -> Results:
    """Run, with the progress on standard error, and return the document."""
    begun = datetime.now(UTC)
    try:
        with _progress() as progress:
            finished = asyncio.run(run(settings, progress))
    except EndpointError as error:
        refuse([str(error)])
    return _results(finished, begun, hardware)


@contextmanager
def _progress() -> Iterator[Progress]:
    terminal = Console(stderr=True)
    with terminal.status("counting the tokens of words") as status:

        def update(number: int, total: int, what: str) -> None:
            status.update(f"{number + 1} of {total}: {what}")

        yield update


def _results(finished: Run, begun: datetime, hardware: str | None) -> Results:
    settings = finished.settings
    method = Method(
        api=settings.work.api,
        prompt_tokens=settings.work.prompt_tokens,
        output_tokens=settings.work.output_tokens,
        requests=settings.requests,
        repetitions=settings.repetitions,
        seed=settings.seed,
        budget=limits(settings.budget),
        token_counts="tokenizer" if settings.tokenizer else "usage",
        time=timestamp(begun),
        hardware=hardware,
    )
    endpoints = [Endpoint(target.name, target.url, target.model) for target in settings.targets]
    return results(method, endpoints, finished.measured, settings.budget)


def _report(measured: Results, output: Output, plot: Path | None) -> None:
    if plot is not None:
        picture.draw(plot, measured)
    if output is Output.JSON:
        print_document(document(measured), as_json=True)
    elif output is Output.TABLE:
        console(_PIPE_WIDTH).print(tables(measured))
    for line in [*(f"not compared: {reason}" for reason in measured.refused), *warnings(measured)]:
        typer.echo(line, err=True)
    if output is Output.PATCH:
        _print_patch(measured)
    if measured.refused:
        raise typer.Exit(2)


def _print_patch(measured: Results) -> None:
    """Write the crossovers, or end with the exit status of results that cannot be compared."""
    try:
        print_document(crossover_patch(*measured_variants(measured.endpoints), measured), as_json=False)
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
