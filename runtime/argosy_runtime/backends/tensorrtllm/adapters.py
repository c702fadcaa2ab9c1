"""LoRA adapters that requests name: the parameter `adapters`, a JSON list of {name, path}."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid, not_found, unavailable

from .folders import ModelFolder

PARAMETER = "adapters"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter: `number` tells it from the others of the model, `rank` is that of its matrices."""

    name: str
    number: int
    path: Path
    rank: int


class Adapters:
    """The adapters of a model, by name."""

    def __init__(self, model: str, adapters: Mapping[str, Adapter]) -> None:
        self._model = model
        self._adapters = adapters

    @classmethod
    def of(cls, config: ModelConfig, folder: ModelFolder) -> "Adapters":
        """Return a model's adapters, whose paths may be relative to its version's folder.

        Raises ServingError: INVALID_ARG for a wrong list or an adapter that does not fit the model, UNAVAILABLE where
        its files are missing.
        """
        if PARAMETER not in config.parameters:
            return cls(config.name, {})
        entries = _entries(config)
        if entries and folder.engine and not _plugin(folder):
            raise invalid(
                f"model '{config.name}': its engine takes no adapters: build it with options.lora_plugin and "
                "options.max_lora_rank"
            )
        most = _largest(folder)
        adapters: dict[str, Adapter] = {}
        for number, (name, path) in enumerate(entries.items()):
            adapter = Adapter(name, number, folder.path / path, _rank(config.name, name, folder.path / path))
            if most and adapter.rank > most:
                raise invalid(
                    f"model '{config.name}': adapter '{name}' has rank {adapter.rank}, and the engine was built for "
                    f"at most {most} (options.max_lora_rank)"
                )
            adapters[name] = adapter
        return cls(config.name, adapters)

    def __bool__(self) -> bool:
        return bool(self._adapters)

    @property
    def largest_rank(self) -> int:
        """The largest rank of the adapters."""
        return max(adapter.rank for adapter in self._adapters.values())

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
    try:
        settings = json.loads((path / "adapter_config.json").read_text(encoding="utf-8"))
        return int(settings["r"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise invalid(
            f"model '{model}': adapter '{name}': '{path}/adapter_config.json' cannot be read: {error!r}"
        ) from None


def _plugin(folder: ModelFolder) -> bool:
    plugins: Any = folder.build.get("plugin_config")
    return isinstance(plugins, dict) and plugins.get("lora_plugin") not in (None, False, "disable")


def _largest(folder: ModelFolder) -> int:
    settings: Any = folder.build.get("lora_config")
    return int(settings.get("max_lora_rank") or 0) if folder.engine and isinstance(settings, dict) else 0
