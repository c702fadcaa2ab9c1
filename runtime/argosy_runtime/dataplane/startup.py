"""Loads at the start of the server and as the repositories change, as the control mode and `--load-model` require."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.folders.watch import changes
from argosy_runtime.repository.registry import Registry

_log = logging.getLogger("argosy.dataplane")
_EVERY = "*"


async def load_named(registry: Registry, requested: Sequence[str], existing: Iterable[str]) -> dict[str, ServingError]:
    """Load the models that `--load-model` names; `*` is all `existing` ones, and must be alone. Return the failures."""
    if _EVERY in requested and len(set(requested)) > 1:
        error = invalid("Wildcard model name '*' must be the ONLY startup model if specified at all.")
        _log.error("--load-model: %s", error.message)
        return {_EVERY: error}
    names = sorted(existing) if _EVERY in requested else list(dict.fromkeys(requested))
    results = await asyncio.gather(*[registry.load(name, None, {}) for name in names], return_exceptions=True)
    failures: dict[str, ServingError] = {}
    for name, result in zip(names, results, strict=True):
        if isinstance(result, ServingError):
            failures[name] = result
        elif result is not None:
            raise result
    return failures


async def follow_changes(registry: Registry, seen: Mapping[str, ModelFolder]) -> Mapping[str, ModelFolder]:
    """Load and unload the models that changed in the repositories since they were `seen`. Return them as they are now.

    A model that a second repository has as well is unloaded, as in Triton: neither of the two is meant more. Where
    the repositories cannot be read, nothing changes until they are looked at again.
    """
    try:
        folders = await asyncio.to_thread(registry.scan)
    except ServingError as error:
        _log.error("cannot look into the model repository: %s", error.message)
        return seen
    changed = changes(seen, folders)
    duplicated = (identifier for identifier in changed.modified if folders[identifier].also_in)
    for identifier in (*changed.removed, *duplicated):
        if identifier in registry.records:
            await registry.remove(registry.records[identifier])
    await registry.load_many(folders[identifier] for identifier in (*changed.added, *changed.modified))
    return folders
