"""LoRA adapters that requests name: the server adds them, those that the model lists as soon as it is loaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.adapters.files import BaseModel, adapter_rank, fits, largest_rank
from argosy_runtime.backends.adapters.named import NamedAdapters
from argosy_runtime.backends.parameters import declared_adapters
from argosy_runtime.errors import invalid

from .folders import ModelFolder

_UNCHECKED: Final = ("adapter_model.bin",)


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

    def __init__(self, base: BaseModel, paths: Sequence[Path], most: int = 0) -> None:
        self._base = base
        self._paths = tuple(paths)
        self._named: NamedAdapters[Adapter] = NamedAdapters(base.name)
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
        base = BaseModel(config.name, folder.hidden, folder.layers, _UNCHECKED)
        return cls(base, [Path(adapter.path) for adapter in listed], _largest(folder))

    def put(self, name: str, path: Path) -> None:
        """Let requests name an adapter; the engine loads it with the first of them. Raises ServingError."""
        adapter = Adapter(name, self._next, path, adapter_rank(self._base, name, path))
        if self._most and adapter.rank > self._most:
            raise invalid(
                f"model '{self._base.name}': adapter '{name}' has rank {adapter.rank}, and the engine takes at most "
                f"{self._most}"
            )
        self._next += 1
        self._named.put(name, adapter)

    def remove(self, name: str) -> None:
        """Let no request name an adapter any more. The engine drops it when it needs the memory.

        Raises ServingError (NOT_FOUND).
        """
        self._named.remove(name)

    def limit(self, rank: int) -> None:
        """Take no adapter of a larger rank from now on."""
        self._most = rank

    def __bool__(self) -> bool:
        return bool(self._paths)

    @property
    def largest_rank(self) -> int:
        """The largest rank of the listed adapters, 0 without any that can be read: `put` says what is wrong with it."""
        return largest_rank(self._paths)

    @property
    def paths(self) -> list[str]:
        """The folders of the listed adapters whose files fit."""
        return [str(path) for path in self._paths if fits(self._base, path)]

    def named(self, name: str) -> Adapter:
        """Return an adapter. Raises ServingError (NOT_FOUND)."""
        return self._named.find(name)


def takes_adapters(folder: ModelFolder) -> bool:
    """Return whether an engine was built with LoRA."""
    plugins: Any = folder.build.get("plugin_config")
    return isinstance(plugins, dict) and plugins.get("lora_plugin") not in (None, False, "disable")


def _largest(folder: ModelFolder) -> int:
    settings: Any = folder.build.get("lora_config")
    return int(settings.get("max_lora_rank") or 0) if folder.engine and isinstance(settings, dict) else 0
