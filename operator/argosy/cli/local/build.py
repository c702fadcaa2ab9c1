"""`argosy build`: build the engines of a folder of manifests on this machine."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from argosy.api.documents import Resource
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import EngineCache, ServingPool
from argosy.api.values.storage import StorageUri
from argosy.cli.local.build_views import LineBuilds, ProgressBuilds, build_table, failures
from argosy.cli.terminal import Filenames, console, refuse
from argosy.local.builds.runner import LocalBuilds
from argosy.local.builds.session import STOPPED, BuildSession, requested_builds
from argosy.local.machine import this_machine
from argosy.local.manifests.checks import checked, local_shapes
from argosy.local.manifests.reading import read_manifests
from argosy.local.manifests.this_machine import for_this_machine, with_cache
from argosy.local.state import DEFAULT_STATE, StateFolder, StateInUseError
from argosy.planning.variants import expanded

FAILED = 2
_PIPE_WIDTH = 160


def build(
    filename: Filenames,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="Build only this model's engines; may be repeated. Default: all."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store", help="The URI to write engines to. Default: the pool's engineCache, or the state folder."
        ),
    ] = None,
    state: Annotated[
        Path, typer.Option(help="The folder to work in, the same as that of `argosy up`.")
    ] = DEFAULT_STATE,
) -> None:
    """Build the missing engines of models for this machine, without serving them.

    Exit status: 0 if every engine is there; 1 if the input is wrong; 2 if an engine failed or cannot be built; 130
    after Ctrl-C: the next call continues from the finished phases.
    """
    folder, node = StateFolder(state.absolute()), this_machine()
    resources = _chosen(_read(filename, folder), model or [])
    try:
        with folder.locked():
            folder.create()
            gpus = sum(not gpu.is_cpu for gpu in node.gpus)
            here = for_this_machine(resources, gpus, folder.engines)
            here = tuple(_with_store(resource, store) for resource in here)
            impossible = requested_builds(here, node, {}).impossible
            session = BuildSession(here, node, LocalBuilds(folder.builds, node), _view())
            is_complete = asyncio.run(session.run())
    except (StateInUseError, OSError) as error:
        refuse([str(error)])
    console(_PIPE_WIDTH).print(build_table(session.results))
    errors = [*failures(session.results), *(f"{name}: {why}" for name, why in impossible.items())]
    for line in errors:
        typer.echo(line, err=True)
    raise typer.Exit(STOPPED if not is_complete else FAILED if errors else 0)


def _read(filenames: list[Path], folder: StateFolder) -> Sequence[Resource]:
    manifests = read_manifests(*filenames)
    manifests = checked(manifests, local_shapes(manifests.resources), folder.engines)
    if manifests.problems:
        refuse(map(str, manifests.problems))
    return manifests.resources


def _chosen(resources: Sequence[Resource], names: Sequence[str]) -> list[Resource]:
    """Return the pools, and the models with an engine, restricted to `names` where there are any."""
    engines = {resource.name for resource in resources if _has_engine(resource)}
    unknown = [name for name in names if name not in engines]
    if not engines:
        refuse(["no model has spec.engine, so there is nothing to build"])
    if unknown:
        there = f"there is no such model with spec.engine; those with one: {', '.join(sorted(engines))}"
        refuse(f"--model {name}: {there}" for name in unknown)
    chosen = set(names) or engines
    return [
        resource
        for resource in resources
        if isinstance(resource, ServingPool) or (_has_engine(resource) and resource.name in chosen)
    ]


def _has_engine(resource: Resource) -> bool:
    """Return whether a model, or a variant of it, has an engine."""
    return isinstance(resource, InferenceModel) and any(
        isinstance(part, InferenceModel) and part.spec.engine is not None for part in expanded([resource])
    )


def _with_store(resource: Resource, store: str | None) -> Resource:
    """Return the resource; a pool keeps its engines at `--store`, if that is set."""
    return resource if store is None else with_cache(resource, EngineCache(storage_uri=_uri(store)))


def _uri(store: str) -> str:
    if ":" not in store:
        return Path(store).absolute().as_uri()
    try:
        return str(TypeAdapter(StorageUri).validate_python(store))
    except ValidationError as error:
        refuse([f"--store: {detail['msg']}" for detail in error.errors()])


def _view() -> ProgressBuilds | LineBuilds:
    console = Console()
    return ProgressBuilds(console) if console.is_terminal else LineBuilds(console)
