"""`argosy build`: the engines of a folder of manifests, built on this machine."""

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
from argosy.cli.printing.builds import LineBuilds, ProgressBuilds, build_table, failures
from argosy.cli.printing.terminal import console, refuse
from argosy.local.builds.runner import LocalBuilds
from argosy.local.builds.session import STOPPED, BuildSession, asked
from argosy.local.machine import this_machine
from argosy.local.manifests.checks import checked
from argosy.local.manifests.reading import for_this_machine, read_manifests, with_cache
from argosy.local.manifests.shapes import local_shapes
from argosy.local.state import DEFAULT_STATE, StateFolder, StateInUseError

FAILED = 2
_PIPE_WIDTH = 160


def build(
    filename: Annotated[Path, typer.Option("--filename", "-f", help="A manifest, or a folder of them.", exists=True)],
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Only this model's engines; may be repeated. Default: all.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store", help="The URI to keep engines at. Default: the pool's engineCache, or the state folder."
        ),
    ] = None,
    state: Annotated[Path, typer.Option(help="The folder to work in, as `argosy up` has it.")] = DEFAULT_STATE,
) -> None:
    """Build the engines that models ask for, for this machine, and serve nothing. What is there already is not built.

    Exit status: 0 if every engine is there, 2 if one failed or none can be built, 1 if the input is wrong, 130 after
    Ctrl-C; what was finished until then is gone on from.
    """
    folder, node = StateFolder(state.absolute()), this_machine()
    resources = _chosen(_read(filename, folder), model or [])
    try:
        with folder.locked():
            folder.create()
            gpus = sum(not gpu.is_cpu for gpu in node.gpus)
            here = [_kept_at(each, store) for each in for_this_machine(resources, gpus, folder.engines)]
            impossible = asked(here, node, {}).impossible
            session = BuildSession(here, node, LocalBuilds(folder.builds, node), _view())
            done = asyncio.run(session.run())
    except (StateInUseError, OSError) as error:
        refuse([str(error)])
    console(_PIPE_WIDTH).print(build_table(session.results))
    said = [*failures(session.results), *(f"{name}: {why}" for name, why in impossible.items())]
    for line in said:
        typer.echo(line, err=True)
    raise typer.Exit(STOPPED if not done else FAILED if said else 0)


def _read(filename: Path, folder: StateFolder) -> Sequence[Resource]:
    manifests = read_manifests(filename)
    manifests = checked(manifests, local_shapes(manifests.resources), folder.engines)
    if manifests.problems:
        refuse(map(str, manifests.problems))
    return manifests.resources


def _chosen(resources: Sequence[Resource], names: Sequence[str]) -> list[Resource]:
    """The pools, and the models with an engine, or those of them that are asked for."""
    engines = {each.name for each in resources if isinstance(each, InferenceModel) and each.spec.engine is not None}
    unknown = [name for name in names if name not in engines]
    if not engines:
        refuse(["no model has spec.engine, so there is nothing to build"])
    if unknown:
        there = f"there is no such model with spec.engine; those with one: {', '.join(sorted(engines))}"
        refuse(f"--model {name}: {there}" for name in unknown)
    wanted = set(names) or engines
    return [each for each in resources if isinstance(each, ServingPool) or _is_wanted(each, wanted)]


def _is_wanted(resource: Resource, names: set[str]) -> bool:
    return isinstance(resource, InferenceModel) and resource.spec.engine is not None and resource.name in names


def _kept_at(resource: Resource, store: str | None) -> Resource:
    """A pool whose engines are kept at `--store`."""
    return resource if store is None else with_cache(resource, EngineCache(storage_uri=_uri(store)))


def _uri(store: str) -> str:
    if ":" not in store:
        return Path(store).absolute().as_uri()
    try:
        return str(TypeAdapter(StorageUri).validate_python(store))
    except ValidationError as error:
        refuse([f"--store: {each['msg']}" for each in error.errors()])


def _view() -> ProgressBuilds | LineBuilds:
    console = Console()
    return ProgressBuilds(console) if console.is_terminal else LineBuilds(console)
