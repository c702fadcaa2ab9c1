"""`argosy get`: what `argosy up` serves, printed as kubectl prints resources."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from argosy.api.crd.crds import DEFINITIONS, Definition
from argosy.cli.printing.terminal import refuse
from argosy.local.printing import definition_of, kinds, table
from argosy.local.state import DEFAULT_STATE, StateFolder
from argosy.local.view import NOT_TAKEN_OVER


class Output(StrEnum):
    """How resources are written."""

    TABLE = "table"
    WIDE = "wide"
    YAML = "yaml"
    JSON = "json"


def get(
    kind: Annotated[
        str | None, typer.Argument(help="inferencemodels, ensembles or servingpools. Default: all.")
    ] = None,
    name: Annotated[str | None, typer.Argument(help="One resource's name. Default: every one.")] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write them.")] = Output.TABLE,
    state: Annotated[Path, typer.Option(help="The state folder of `argosy up`.")] = DEFAULT_STATE,
) -> None:
    """Print what `argosy up` serves here, with its status."""
    folder = StateFolder(state)
    status = folder.read_status()
    if status is None:
        refuse([f"{state} holds no status: start `argosy up` here, or name its folder with --state"])
    if not folder.held():
        typer.echo("argosy up does not run here; this is how things stood when it ended", err=True)
    if status.get("problems"):
        typer.echo(
            "\n".join([f"{NOT_TAKEN_OVER}:", *status["problems"]]),
            err=True,
        )
    found = _chosen(status["resources"], _wanted(kind), name)
    _print_without_effect(status.get("withoutEffect", ()), found)
    if name is not None and not found:
        refuse([f"there is no {kind} {name!r}"])
    if output in (Output.TABLE, Output.WIDE):
        _print_tables(found, output is Output.WIDE)
    else:
        sys.stdout.write(_written(found, output, alone=name is not None))


def _wanted(kind: str | None) -> tuple[Definition, ...]:
    if kind is None or kind == "all":
        return DEFINITIONS
    definition = definition_of(kind)
    if definition is None:
        refuse([f"{kind!r} is no kind of resource; it is one of {', '.join(kinds())}"])
    return (definition,)


def _chosen(
    documents: Sequence[dict[str, Any]], wanted: Sequence[Definition], name: str | None
) -> list[tuple[Definition, list[dict[str, Any]]]]:
    found = []
    for definition in wanted:
        kind = definition.kind.__name__
        mine = [each for each in documents if each["kind"] == kind and name in (None, each["metadata"]["name"])]
        if mine:
            found.append((definition, mine))
    return found


def _print_without_effect(lines: Sequence[str], found: Sequence[tuple[Definition, list[dict[str, Any]]]]) -> None:
    """Print what has no effect of these resources, apart from the resources themselves."""
    metadata = ((definition.kind.__name__, each["metadata"]) for definition, mine in found for each in mine)
    shown = tuple(f"{kind} {each.get('namespace', 'default')}/{each['name']}: " for kind, each in metadata)
    for line in lines:
        if line.startswith(shown):
            typer.echo(line, err=True)


def _print_tables(found: Sequence[tuple[Definition, list[dict[str, Any]]]], wide: bool) -> None:
    if not found:
        typer.echo("No resources found.", err=True)
    for number, (definition, documents) in enumerate(found):
        if number:
            typer.echo("")
        for line in table(definition, documents, wide, datetime.now(UTC)):
            typer.echo(line)


def _written(found: Sequence[tuple[Definition, list[dict[str, Any]]]], output: Output, alone: bool) -> str:
    items = [document for _, documents in found for document in documents]
    whole: Mapping[str, Any] = items[0] if alone and len(items) == 1 else _list(items)
    if output is Output.JSON:
        return json.dumps(whole, indent=2) + "\n"
    text: str = yaml.safe_dump(whole, sort_keys=False)
    return text


def _list(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}
