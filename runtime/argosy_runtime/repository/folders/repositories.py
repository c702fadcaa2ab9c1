"""The server's repositories together: a model of several is refused, unless each repository is a namespace.

A client may register more of them, each with one model under a name of the client's choice.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from argosy_runtime.errors import ErrorKind, ServingError, invalid

from . import layout
from .catalog import Catalog
from .layout import DUPLICATE, ModelFolder, identifier_of


@dataclass(frozen=True, slots=True)
class _Registered:
    """A repository that a client has registered: the model in `folder` has the name `name`."""

    path: Path
    folder: str
    name: str

    def named(self, folders: frozenset[str]) -> frozenset[str]:
        """Return the names of the models whose folders these are."""
        return (folders - {self.folder}) | {self.name} if self.folder in folders else folders


@dataclass(frozen=True, slots=True)
class RepositoryModels:
    """Models that have a folder: their names by identifier. `duplicates` are those of several repositories."""

    names: Mapping[str, str]
    duplicates: frozenset[str] = frozenset()


class Repositories:
    """Folders of models. `config_name` is --model-config-name, `namespaces` --model-namespacing."""

    def __init__(self, paths: Sequence[Path], config_name: str = "", namespaces: bool = False) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._config_name = config_name
        self._namespaces = namespaces
        self._catalog = Catalog(self._paths)
        self._registered: tuple[_Registered, ...] = ()
        self.last_names = frozenset[str]()
        """The models that the repositories had when they were listed last."""

    def register(self, path: Path, folder: str, name: str) -> None:
        """Add a repository, whose model in `folder` gets the name `name`. Raises ALREADY_EXISTS, in Triton's words."""
        if path in self._paths or any(registered.path == path for registered in self._registered):
            raise _exists(f"model repository '{path}' has already been registered")
        if any(registered.name == name for registered in self._registered):
            raise _exists(f"failed to register '{name}', there is a conflicting mapping for '{name}'")
        self._registered = (*self._registered, _Registered(path, folder, name))

    def unregister(self, path: Path) -> None:
        """Remove a repository that was registered. Raises INVALID_ARG, in Triton's words."""
        others = tuple(registered for registered in self._registered if registered.path != path)
        if others == self._registered:
            raise invalid(f"failed to unregister '{path}', repository not found")
        self._registered = others
        self._catalog.forget(path)

    def scan(self) -> dict[str, ModelFolder]:
        """Return the models by identifier; a name of more than one gets a `problem` without namespaces. Blocks.

        Repositories that were registered are left out: their models are loaded by name. Raises ServingError where a
        repository cannot be read.
        """
        folders: dict[str, ModelFolder] = {}
        for path in self._paths:
            for folder in layout.scan(path, self._config_name).values():
                own = self._placed(folder, path)
                first = folders.get(own.identifier)
                folders[own.identifier] = own if first is None else _duplicated(first, own)
        return dict(sorted(folders.items()))

    def named(self, name: str) -> list[ModelFolder]:
        """Return the folders of the models of a name: at most one, or one for each namespace. Blocks."""
        registered = self._registered
        chosen = next((one for one in registered if one.name == name), None)
        if chosen is not None:
            path = chosen.path / chosen.folder
            if not chosen.folder or not path.is_dir():
                return []
            folder = layout.read_folder(path, self._config_name)
            return [self._placed(replace(folder, name=name, renamed=True), chosen.path)]
        every = (*self._paths, *(one.path for one in registered if one.folder != name))
        paths = [path for path in every if (path / name).is_dir()]
        folders = [self._placed(layout.read_folder(path / name, self._config_name), path) for path in paths]
        if len(folders) > 1 and not self._namespaces:
            return [replace(folders[0], problem=DUPLICATE, also_in=tuple(folder.path for folder in folders[1:]))]
        return folders

    async def names(self) -> frozenset[str]:
        """Return the names of the models now, loaded or not. Raises ServingError."""
        listed = await asyncio.to_thread(self._listed)
        self.last_names = frozenset[str]().union(*listed.values())
        return self.last_names

    async def models(self) -> RepositoryModels:
        """Return the models that have a folder now. Raises ServingError."""
        listed = await asyncio.to_thread(self._listed)
        if self._namespaces:
            return RepositoryModels({identifier_of(str(path), n): n for path, names in listed.items() for n in names})
        folders = Counter(chain.from_iterable(listed.values()))
        self.last_names = frozenset(folders)
        duplicates = frozenset(name for name, count in folders.items() if count > 1)
        return RepositoryModels(dict(zip(folders, folders, strict=True)), duplicates)

    def _listed(self) -> dict[Path, frozenset[str]]:
        """Return the names of the models by repository. One that was registered and is gone has none."""
        listed = self._catalog.by_repository()
        for registered in self._registered:
            with suppress(ServingError):
                listed[registered.path] = registered.named(self._catalog.of(registered.path))
        return listed

    def _placed(self, folder: ModelFolder, path: Path) -> ModelFolder:
        return replace(folder, namespace=str(path)) if self._namespaces else folder


def _exists(message: str) -> ServingError:
    return ServingError(ErrorKind.ALREADY_EXISTS, message)


def _duplicated(first: ModelFolder, other: ModelFolder) -> ModelFolder:
    return replace(first, problem=DUPLICATE, also_in=(*first.also_in, other.path))
