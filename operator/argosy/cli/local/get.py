"""`argosy get`: print what `argosy up` serves as kubectl prints resources."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.api.crd.crds import DEFINITIONS, Definition
from argosy.cli.terminal import print_document, refuse
from argosy.local.printing import definition_of, kinds, table
from argosy.local.state import DEFAULT_STATE, StateFolder
from argosy.local.views.rows import NOT_TAKEN_OVER
from argosy_common.wording import did_you_mean

Selection = Sequence[tuple[Definition, list[dict[str, Any]]]]
"""Documents of resources by their kind."""


class Output(StrEnum):
    """How resources are written."""

    TABLE = "table"
    WIDE = "wide"
    YAML = "yaml"
    JSON = "json"


def get(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="inferencemodels, ensembles or servingpools, or shorter: model, ensemble, pool. Default: all."
        ),
    ] = None,
    name: Annotated[str | None, typer.Argument(help="The name of one resource. Default: every resource.")] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write them.")] = Output.TABLE,
    state: Annotated[Path, typer.Option(help="The state folder of `argosy up`.")] = DEFAULT_STATE,
) -> None:
    """Print what `argosy up` serves here, with its status."""
    definitions = _definitions(kind)
    status = _status(state)
    selected = _select(status["resources"], definitions, name)
    _print_without_effect(status.get("withoutEffect", ()), selected)
    if name is not None and not selected:
        refuse([f"there is no {kind} {name!r}"])
    if output in (Output.TABLE, Output.WIDE):
        _print_tables(selected, output is Output.WIDE)
        return
    items = [document for _, documents in selected for document in documents]
    alone = name is not None and len(items) == 1
    print_document(items[0] if alone else _list(items), as_json=output is Output.JSON)


def _status(state: Path) -> Mapping[str, Any]:
    """Return the last written status. If it cannot be read, print the reason and exit."""
    folder = StateFolder(state)
    status = folder.read_status()
    if status is None:
        refuse([f"{state} holds no status: start `argosy up` here, or name its folder with --state"])
    if not folder.is_locked():
        typer.echo("argosy up does not run here; this is how things stood when it ended", err=True)
    if status.get("problems"):
        typer.echo("\n".join([f"{NOT_TAKEN_OVER}:", *status["problems"]]), err=True)
    return status


def _definitions(kind: str | None) -> tuple[Definition, ...]:
    if kind is None or kind == "all":
        return DEFINITIONS
    definition = definition_of(kind)
    if definition is None:
        refuse([f"{kind!r} is no kind of resource{did_you_mean(kind, kinds())}"])
    return (definition,)


def _select(documents: Sequence[dict[str, Any]], definitions: Sequence[Definition], name: str | None) -> Selection:
    selected = []
    for definition in definitions:
        kind = definition.kind.__name__
        matches = [
            document
            for document in documents
            if document["kind"] == kind and name in (None, document["metadata"]["name"])
        ]
        if matches:
            selected.append((definition, matches))
    return selected


def _print_without_effect(lines: Sequence[str], selected: Selection) -> None:
    """Print which settings of the selected resources have no effect."""
    metadata = (
        (definition.kind.__name__, document["metadata"]) for definition, documents in selected for document in documents
    )
    prefixes = tuple(f"{kind} {meta.get('namespace', 'default')}/{meta['name']}: " for kind, meta in metadata)
    for line in lines:
        if line.startswith(prefixes):
            typer.echo(line, err=True)


def _print_tables(selected: Selection, wide: bool) -> None:
    if not selected:
        typer.echo("No resources found.", err=True)
    for number, (definition, documents) in enumerate(selected):
        if number:
            typer.echo("")
        for line in table(definition, documents, wide, datetime.now(UTC)):
            typer.echo(line)


def _list(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}
