"""LoRA adapters that requests name: the server adds them, those that the model lists as soon as it is loaded."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.parameters import declared_adapters
from argosy_runtime.errors import ServingError, invalid, not_found, unavailable

from .folders import ModelFolder

SETTINGS = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter: `number` tells it from the others of the model, `rank` is that of its matrices."""

    name: str
    number: int
    path: Path
    rank: int


class Adapters:
    """The adapters of a model, by name. Their numbers are not used again, since the engine keeps what it has loaded.

    `paths`: the folders of those that it lists. `most` is the largest rank that the engine takes, 0 where it is not
    known.
    """

    def __init__(self, model: str, paths: Sequence[Path], most: int = 0) -> None:
        self._model = model
        self._paths = tuple(paths)
        self._adapters: dict[str, Adapter] = {}
        self._most = most
        self._next = 0

    @classmethod
    def of(cls, config: ModelConfig, folder: ModelFolder) -> "Adapters":
        """Return the adapters of a model before any is added, as large as those that it lists.

        Raises ServingError (INVALID_ARG) for a wrong list, and for an engine that takes none.
        """
        listed = declared_adapters(config, folder.path)
        if listed and folder.engine and not takes_adapters(folder):
            raise invalid(
                f"model '{config.name}': its engine takes no adapters: build it with options.lora_plugin and "
                "options.max_lora_rank"
            )
        return cls(config.name, [Path(adapter.path) for adapter in listed], _largest(folder))

    def put(self, name: str, path: Path) -> None:
        """Let requests name an adapter; the engine loads it with the first of them. Raises ServingError."""
        adapter = Adapter(name, self._next, path, _rank(self._model, name, path))
        if self._most and adapter.rank > self._most:
            raise invalid(
                f"model '{self._model}': adapter '{name}' has rank {adapter.rank}, and the engine takes at most "
                f"{self._most}"
            )
        self._next += 1
        self._adapters[name] = adapter

    def remove(self, name: str) -> None:
        """Let no request name an adapter any more. The engine drops it when it needs the memory.

        Raises ServingError (NOT_FOUND).
        """
        del self._adapters[self.named(name).name]

    def limit(self, rank: int) -> None:
        """Take no adapter of a larger rank from now on."""
        self._most = rank

    def __bool__(self) -> bool:
        return bool(self._paths)

    @property
    def largest_rank(self) -> int:
        """The largest rank of the listed adapters, 0 without any that can be read: `put` says what is wrong with it."""
        return max((_rank_or_0(self._model, path) for path in self._paths), default=0)

    @property
    def paths(self) -> list[str]:
        """The folders of the listed adapters that have weights."""
        return [str(path) for path in self._paths if _has_weights(path)]

    def named(self, name: str) -> Adapter:
        """Return an adapter. Raises ServingError (NOT_FOUND)."""
        adapter = self._adapters.get(name)
        if adapter is None:
            names = ", ".join(self._adapters) or "none"
            raise not_found(f"model '{self._model}' has no adapter '{name}'; it has {names}")
        return adapter


def _has_weights(path: Path) -> bool:
    return any((path / weights).is_file() for weights in WEIGHTS)


def _rank_or_0(model: str, path: Path) -> int:
    try:
        return _rank(model, path.name, path)
    except ServingError:
        return 0


def _rank(model: str, name: str, path: Path) -> int:
    if not _has_weights(path):
        raise unavailable(f"model '{model}': adapter '{name}': '{path}' has no {WEIGHTS[0]}")
    if not (path / SETTINGS).is_file():
        raise unavailable(f"model '{model}': adapter '{name}' has no '{path / SETTINGS}'")
    try:
        settings = json.loads((path / SETTINGS).read_text(encoding="utf-8"))
        return int(settings["r"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise invalid(f"model '{model}': adapter '{name}': '{path / SETTINGS}' cannot be read: {error!r}") from None


def takes_adapters(folder: ModelFolder) -> bool:
    """Return whether an engine was built with LoRA."""
    plugins: Any = folder.build.get("plugin_config")
    return isinstance(plugins, dict) and plugins.get("lora_plugin") not in (None, False, "disable")


def _largest(folder: ModelFolder) -> int:
    settings: Any = folder.build.get("lora_config")
    return int(settings.get("max_lora_rank") or 0) if folder.engine and isinstance(settings, dict) else 0
