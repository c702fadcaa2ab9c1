"""Loads and unloads that clients and running models ask for."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from argosy_runtime.errors import invalid, unavailable, unsupported
from argosy_runtime.repository.options import ControlMode
from argosy_runtime.repository.registry import Registry


class ModelControl:
    """Explicit model control. Every method raises ServingError where the control mode does not allow it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._options = registry.options

    async def load(self, name: str, config: str | None, files: Mapping[str, bytes], for_model: bool = False) -> None:
        """Load or reload a model; `for_model`: a running model requests it, which may override files."""
        self._require_explicit("load", name)
        if (config is not None or files) and not (for_model or self._options.overrides):
            raise unsupported(
                f"cannot load '{name}' with a configuration or files of the request: this server takes models as its "
                "repository has them, unless it is started with --allow-override-files=true"
            )
        await self._registry.load(name, config, files, for_model)

    async def divide(self, name: str) -> None:
        """Divide a model's requests among its versions as its configuration declares now."""
        self._require_explicit("divide the requests of", name)
        await self._registry.divide(name)

    async def unload(self, name: str, unload_dependents: bool) -> None:
        """Unload a model."""
        self._require_explicit("unload", name)
        await self._registry.unload(name, unload_dependents)

    async def register(self, repository: Path, folder: str, name: str) -> None:
        """Add a repository, whose model in `folder` gets the name `name`."""
        self._registry.require_working()
        if self._options.control_mode is not ControlMode.EXPLICIT:
            raise unsupported("repository registration is not allowed if model control mode is not EXPLICIT")
        if not await asyncio.to_thread(repository.is_dir):
            raise invalid(f"failed to register '{repository}', repository not found")
        self._registry.repositories.register(repository, folder, name)

    def unregister(self, repository: Path) -> None:
        """Remove a repository that was registered."""
        self._registry.repositories.unregister(repository)
        self._registry.models.forget(repository)

    def _require_explicit(self, what: str, name: str) -> None:
        self._registry.require_working()
        if self._options.control_mode is not ControlMode.EXPLICIT:
            text = "explicit model load / unload is not allowed if polling is enabled"
            raise unavailable(f"{text}: cannot {what} '{name}'")
