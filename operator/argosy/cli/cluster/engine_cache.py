"""The engines of a pool's cache, for `argosy engines list` and `argosy engines gc`."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import typer

from argosy.api.documents import Resource
from argosy.api.servingpool import ServingPool
from argosy.api.values.quantity import parse_duration
from argosy.cli.cluster.engine_table import engine_document, engine_table, removal, total
from argosy.cli.terminal import Output, console, print_document, refuse
from argosy.local.manifests.reading import read_manifests
from argosy.planning.builds.uses import EngineUses
from argosy_agent.engines.inventory import Half, StoredEngine
from argosy_agent.engines.store import EngineStore, open_store
from argosy_agent.transfer.errors import StorageError
from argosy_agent.transfer.stores.settings import Settings

_PIPE_WIDTH = 160
_DAY_S = 24 * 3600
_SECRET = Path("/secrets/storage")
_NO_STORE = "name the store with --store, or give the ServingPool that has spec.storage.engineCache with -f"
_NO_MODELS = (
    "No InferenceModel is given with -f, so it is unknown which engines are used, and intact ones stay. Give all "
    "models: kubectl get inferencemodels -A -o yaml > models.yaml"
)


def list_engines(filename: Sequence[Path], store: str, pvc_root: Path, output: Output) -> None:
    """Print every engine of a cache: what it is, how large, how old, how accurate, and which models use it."""
    resources = _resources(filename)
    uses, now = EngineUses(resources), datetime.now(UTC)
    try:
        inventories = {cache.uri: list(cache.inventory()) for cache in _stores(resources, store, pvc_root)}
    except StorageError as error:
        refuse([str(error)])
    if output is Output.TABLE:
        for uri, entries in inventories.items():
            console(_PIPE_WIDTH).print(engine_table(uri, entries, uses, now))
        return
    documents = [
        engine_document(uri, entry, uses)
        for uri, entries in inventories.items()
        for entry in entries
        if entry.is_engine
    ]
    print_document(documents, as_json=output is Output.JSON)


def collect_engines(filename: Sequence[Path], store: str, pvc_root: Path, older_than: str, dry_run: bool) -> None:
    """Remove engines that no model of -f uses, and what unfinished builds left.

    Without a model in -f only broken engines are removed.
    """
    before = time.time() - _seconds(older_than)
    resources = _resources(filename)
    uses = EngineUses(resources)
    if not uses.has_models:
        typer.echo(_NO_MODELS, err=True)
    removed: list[StoredEngine | Half] = []
    try:
        for cache in _stores(resources, store, pvc_root):
            for entry in _collect(cache, uses, before, dry_run):
                removed.append(entry)
                typer.echo(removal(entry, datetime.now(UTC), dry_run))
    except StorageError as error:
        typer.echo(total(removed, dry_run))
        refuse([str(error)])
    typer.echo(total(removed, dry_run))


def _collect(store: EngineStore, uses: EngineUses, before: float, dry_run: bool) -> Iterator[StoredEngine | Half]:
    def is_used(engine: StoredEngine) -> bool:
        return bool(uses.of(engine.key, engine.requests))

    return store.collect(is_used if uses.has_models else None, before, remove=not dry_run)


def _resources(filenames: Sequence[Path]) -> list[Resource]:
    """Return what all files declare. An invalid resource might use any engine, so it ends the command."""
    if not filenames:
        return []
    manifests = read_manifests(*filenames)
    if manifests.problems:
        refuse(map(str, manifests.problems))
    return list(manifests.resources)


def _stores(resources: Sequence[Resource], uri: str, pvc_root: Path) -> list[EngineStore]:
    pools = [resource for resource in resources if isinstance(resource, ServingPool)]
    caches = [pool.spec.storage.engine_cache for pool in pools]
    uris = [uri] if uri else sorted({cache.storage_uri for cache in caches if cache is not None})
    if not uris:
        refuse([_NO_STORE])
    return [open_store(uri, Settings.of_process(_SECRET), pvc_root) for uri in uris]


def _seconds(text: str) -> float:
    days = text.removesuffix("d")
    if days != text and days.isdigit():
        return int(days) * _DAY_S
    try:
        return parse_duration(text) / 1000
    except ValueError:
        refuse([f"--older-than: {text!r} is no time span; write it as 30d, 12h or 90m"])
