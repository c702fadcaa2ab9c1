"""The server's repositories together: a model of several is refused, unless each repository is a namespace."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from . import layout
from .catalog import Catalog
from .layout import DUPLICATE, ModelFolder, identifier_of


class Repositories:
    """Folders of models. `config_name` is --model-config-name, `namespaces` --model-namespacing."""

    def __init__(self, paths: Sequence[Path], config_name: str = "", namespaces: bool = False) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._config_name = config_name
        self._namespaces = namespaces
        self._catalog = Catalog(self._paths)
        self.last_names = frozenset[str]()
        """The models that the repositories had when they were listed last."""

    def scan(self) -> dict[str, ModelFolder]:
        """Return the models by identifier; a name of more than one gets a `problem` without namespaces. Blocks.

        Raises ServingError where a repository cannot be read.
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
        paths = [path for path in self._paths if (path / name).is_dir()]
        folders = [self._placed(layout.read_folder(path / name, self._config_name), path) for path in paths]
        if len(folders) > 1 and not self._namespaces:
            return [replace(folders[0], problem=DUPLICATE, also_in=tuple(folder.path for folder in folders[1:]))]
        return folders

    async def names(self) -> frozenset[str]:
        """Return the names of the models now, loaded or not. Raises ServingError."""
        self.last_names = await asyncio.to_thread(self._catalog.names)
        return self.last_names

    async def identifiers(self) -> Mapping[str, str]:
        """Return the names of the models now, by identifier. Raises ServingError."""
        if not self._namespaces:
            return {name: name for name in await self.names()}
        listed = await asyncio.to_thread(self._catalog.by_repository)
        return {identifier_of(str(path), name): name for path, names in listed.items() for name in names}

    def _placed(self, folder: ModelFolder, path: Path) -> ModelFolder:
        return replace(folder, namespace=str(path)) if self._namespaces else folder


def _duplicated(first: ModelFolder, other: ModelFolder) -> ModelFolder:
    return replace(first, problem=DUPLICATE, also_in=(*first.also_in, other.path))
