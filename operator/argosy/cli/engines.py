"""`argosy engines`: what a pool's engine cache holds, and removing what nobody uses."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
import yaml

from argosy.api.documents import Resource
from argosy.api.servingpool import ServingPool
from argosy.api.values.quantity import parse_duration
from argosy.cli.printing.engines import collected, engine_document, engine_table, total
from argosy.cli.printing.terminal import console, refuse
from argosy.local.manifests.reading import read_manifests
from argosy.planning.builds.uses import EngineUses
from argosy_agent.engines.inventory import Half, Held
from argosy_agent.engines.store import EngineStore, open_store
from argosy_agent.transfer.errors import StorageError
from argosy_agent.transfer.stores.settings import Settings

engines = typer.Typer(no_args_is_help=True, help="List the built engines that are kept, or remove what nobody uses.")
_PIPE_WIDTH = 160
_DAYS = 24 * 3600
_SECRET = Path("/secrets/storage")
_NO_STORE = "name the store with --store, or give the ServingPool that has spec.storage.engineCache with -f"
_NO_MODELS = (
    "No InferenceModel is given with -f, so who uses which engine is not known, and whole ones stay. Give all models: "
    "kubectl get inferencemodels -A -o yaml > models.yaml"
)


class Output(StrEnum):
    """How engines are written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Filenames = Annotated[
    list[Path] | None,
    typer.Option("--filename", "-f", help="Manifests, or a folder of them: the pool, and models that use engines."),
]
Store = Annotated[
    str, typer.Option("--store", help="The store's URI. Default: spec.storage.engineCache of each pool in -f.")
]
PvcRoot = Annotated[Path, typer.Option("--pvc-root", help="Where claims are mounted, by name: for pvc: in a Pod.")]


@engines.command("list")
def list_engines(
    filename: Filenames = None,
    store: Store = "",
    pvc_root: PvcRoot = Path("/pvc"),
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write them.")] = Output.TABLE,
) -> None:
    """Show every engine that is kept: what it is, how large, how old, how accurate, and which models use it."""
    resources = _resources(filename or [])
    uses, now = EngineUses(resources), datetime.now(UTC)
    try:
        held = {each.uri: list(each.held()) for each in _stores(resources, store, pvc_root)}
    except StorageError as error:
        refuse([str(error)])
    if output is Output.TABLE:
        for uri, found in held.items():
            console(_PIPE_WIDTH).print(engine_table(uri, found, uses, now))
        return
    documents = [engine_document(uri, each, uses) for uri, found in held.items() for each in found if each.is_engine]
    text = json.dumps(documents, indent=2)
    if output is Output.YAML:
        text = yaml.safe_dump(json.loads(text), sort_keys=False)
    sys.stdout.write(text.rstrip("\n") + "\n")


@engines.command("gc")
def collect_engines(
    filename: Filenames = None,
    store: Store = "",
    pvc_root: PvcRoot = Path("/pvc"),
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            help="What was written or asked for since then stays: more than a build takes, as 30d.",
        ),
    ] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Remove engines that no model of -f uses, and what builds left that did not end.

    Without a model in -f engines stay, but for broken ones.
    """
    before = time.time() - _seconds(older_than)
    resources = _resources(filename or [])
    uses = EngineUses(resources)
    if not uses.are_known:
        typer.echo(_NO_MODELS, err=True)
    gone: list[Held | Half] = []
    try:
        for each in _stores(resources, store, pvc_root):
            for found in _collected(each, uses, before, dry_run):
                gone.append(found)
                typer.echo(collected(found, datetime.now(UTC), dry_run))
    except StorageError as error:
        typer.echo(total(gone, dry_run))
        refuse([str(error)])
    typer.echo(total(gone, dry_run))


def _collected(store: EngineStore, uses: EngineUses, before: float, dry_run: bool) -> Iterator[Held | Half]:
    def is_used(held: Held) -> bool:
        return bool(uses.of(held.key, held.requests))

    return store.collect(is_used if uses.are_known else None, before, remove=not dry_run)


def _resources(filenames: Sequence[Path]) -> list[Resource]:
    """What all files declare; one that is wrong might use any engine."""
    found: list[Resource] = []
    for filename in filenames:
        manifests = read_manifests(filename)
        if manifests.problems:
            refuse(map(str, manifests.problems))
        found += manifests.resources
    return found


def _stores(resources: Sequence[Resource], uri: str, pvc_root: Path) -> list[EngineStore]:
    pools = [each for each in resources if isinstance(each, ServingPool)]
    caches = [each.spec.storage.engine_cache for each in pools]
    uris = [uri] if uri else sorted({each.storage_uri for each in caches if each is not None})
    if not uris:
        refuse([_NO_STORE])
    return [open_store(each, Settings.of_process(_SECRET), pvc_root) for each in uris]


def _seconds(words: str) -> float:
    days = words.removesuffix("d")
    if days != words and days.isdigit():
        return int(days) * _DAYS
    try:
        return parse_duration(words) / 1000
    except ValueError:
        refuse([f"--older-than: {words!r} is no time span; write it as 30d, 12h or 90m"])
