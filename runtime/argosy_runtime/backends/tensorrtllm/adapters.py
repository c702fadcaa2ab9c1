"""LoRA adapters that requests name: those of the parameter `adapters`, and those that the server adds later."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid, not_found, unavailable

from .folders import ModelFolder

PARAMETER = "adapters"
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

    `most` is the largest rank that the engine takes, 0 where it is not known.
    """

    def __init__(self, model: str, adapters: Mapping[str, Adapter], most: int = 0) -> None:
        self._model = model
        self._adapters = dict(adapters)
        self._most = most
        self._next = len(self._adapters)

    @classmethod
    def of(cls, config: ModelConfig, folder: ModelFolder) -> "Adapters":
        """Return a model's adapters, whose paths may be relative to its version's folder.

        Raises ServingError: INVALID_ARG for a wrong list or an adapter that does not fit the model, UNAVAILABLE where
        its files are missing.
        """
        entries = _entries(config) if PARAMETER in config.parameters else {}
        if entries and folder.engine and not takes_adapters(folder):
            raise invalid(
                f"model '{config.name}': its engine takes no adapters: build it with options.lora_plugin and "
                "options.max_lora_rank"
            )
        adapters = cls(config.name, {}, _largest(folder))
        for name, path in entries.items():
            adapters.put(name, folder.path / path)
        return adapters

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
        return bool(self._adapters)

    @property
    def largest_rank(self) -> int:
        """The largest rank of the adapters, 0 without any."""
        return max((adapter.rank for adapter in self._adapters.values()), default=0)

    @property
    def paths(self) -> list[str]:
        """The folders of the adapters."""
        return [str(adapter.path) for adapter in self._adapters.values()]

    def named(self, name: str) -> Adapter:
        """Return an adapter. Raises ServingError (NOT_FOUND)."""
        adapter = self._adapters.get(name)
        if adapter is None:
            names = ", ".join(self._adapters) or "none"
            raise not_found(f"model '{self._model}' has no adapter '{name}'; it has {names}")
        return adapter


def _entries(config: ModelConfig) -> dict[str, str]:
    text = config.parameters[PARAMETER].string_value
    try:
        entries = json.loads(text or "[]")
        return {str(entry["name"]): str(entry["path"]) for entry in entries}
    except (ValueError, TypeError, KeyError) as error:
        raise invalid(
            f"model '{config.name}': parameter '{PARAMETER}' is no JSON list of {{name, path}}: {error!r}"
        ) from None


def _rank(model: str, name: str, path: Path) -> int:
    if not any((path / weights).is_file() for weights in WEIGHTS):
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
