"""`argosy advise`: which variant of a model suits a traffic, by results of `argosy bench`."""

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from argosy.api import InferenceModel
from argosy.api.model.variantspecs import variant_name
from argosy.bench.results import Endpoint, Results, read_results
from argosy.bench.variants.advice import Advice, Traffic, advice, results_for
from argosy.bench.variants.crossovers import MeasuredVariant, crossover_patch
from argosy.bench.variants.objectives import objectives, unmeasured
from argosy.cli.terminal import Filenames, print_document, refuse
from argosy.local.manifests.reading import read_manifests

NO_VARIANT = 2


class Output(StrEnum):
    """How the advice is written."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    PATCH = "patch"


def advise(
    filename: Filenames,
    measured: Annotated[
        list[Path], typer.Option("--results", help="A document of argosy bench -o json; may be repeated.")
    ],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="The InferenceModel; default: the only one with variants.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", "-r", min=1e-6, help="Requests a second on all servers. Default: as many as possible."),
    ] = None,
    servers: Annotated[int, typer.Option("--servers", min=1, help="Servers that share the requests.")] = 1,
    prompt_tokens: Annotated[
        int | None, typer.Option("--prompt-tokens", min=1, help="Tokens of a prompt. Default: as measured.")
    ] = None,
    output_tokens: Annotated[
        int | None, typer.Option("--output-tokens", min=1, help="Tokens of an answer. Default: as measured.")
    ] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to write the advice; patch: the measured crossovers alone.")
    ] = Output.TEXT,
) -> None:
    """Say which variant of a model suits its slo at a rate of requests, with the arithmetic.

    Exit status: 0; 1 if the input is wrong; 2 if no variant suits, or there is no crossover to write.
    """
    documents = [_document(path) for path in measured]
    declared = _model(filename, model)
    try:
        results = results_for(documents, prompt_tokens, output_tokens)
        variants = _variants(declared, results.endpoints)
    except ValueError as error:
        refuse([str(error)])
    if output is Output.PATCH:
        _print_patch(declared, variants, results)
        return
    slo = declared.spec.slo
    answer = advice(Traffic(rate, servers, objectives(slo)), variants, results)
    _print(answer, unmeasured(slo), output)
    if not answer.variant:
        raise typer.Exit(NO_VARIANT)


def _model(paths: Sequence[Path], name: str | None) -> InferenceModel:
    manifests = read_manifests(*paths)
    if manifests.problems:
        refuse([str(problem) for problem in manifests.problems])
    models = [resource for resource in manifests.resources if isinstance(resource, InferenceModel)]
    with_variants = [model for model in models if model.spec.variants]
    named = [model for model in models if model.name == name] if name is not None else with_variants or models
    if len(named) != 1:
        refuse([_which(models, with_variants, name)])
    return named[0]


def _which(models: Sequence[InferenceModel], with_variants: Sequence[InferenceModel], name: str | None) -> str:
    """Return why none of these models is the one that is asked for."""
    if not models:
        return "-f: no InferenceModel here"
    names = ", ".join(sorted(model.name for model in with_variants))
    if not names:
        return "-f: no InferenceModel here has spec.variants"
    return f"--model: name one InferenceModel of {names}" if name is None else f"--model {name}: name one of {names}"


def _document(path: Path) -> Results:
    try:
        return read_results(path.read_bytes())
    except OSError as error:
        refuse([f"--results {path}: {error.strerror or error}"])
    except msgspec.DecodeError as error:
        refuse([f"--results {path}: {error}"])


def _variants(model: InferenceModel, endpoints: Sequence[Endpoint]) -> list[MeasuredVariant]:
    """Return the model's variants in its order; of a model without variants every endpoint. Raises ValueError."""
    if not model.spec.variants:
        return [MeasuredVariant(endpoint.name, endpoint.name) for endpoint in endpoints]
    return [_variant(model, variant.name, endpoints) for variant in model.spec.variants]


def _variant(model: InferenceModel, variant: str, endpoints: Sequence[Endpoint]) -> MeasuredVariant:
    served = variant_name(model.served_name, variant)
    by_model = [endpoint.name for endpoint in endpoints if endpoint.model == served]
    matches = by_model or [endpoint.name for endpoint in endpoints if endpoint.name == variant]
    if len(matches) != 1:
        raise ValueError(
            f"--results: {'several endpoints are' if matches else 'no endpoint is'} variant {variant}: measure it with "
            f"argosy bench {variant}=URL --model {variant}={served}"
        )
    return MeasuredVariant(variant, matches[0])


def _print_patch(model: InferenceModel, variants: Sequence[MeasuredVariant], results: Results) -> None:
    try:
        print_document(crossover_patch(model.name, variants, results), as_json=False)
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(NO_VARIANT) from error


def _print(answer: Advice, left_out: Sequence[str], output: Output) -> None:
    if output is Output.TEXT:
        for line in [answer.conclusion, *answer.reasons]:
            typer.echo(line)
    else:
        print_document(asdict(answer), as_json=output is Output.JSON)
    for field in left_out:
        typer.echo(f"not judged: argosy bench does not measure {field}", err=True)
