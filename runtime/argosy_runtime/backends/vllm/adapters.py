"""LoRA adapters of one engine: names, paths, numbers."""

import itertools
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.adapters.files import BaseModel, adapter_rank, largest_rank
from argosy_runtime.backends.adapters.named import NamedAdapters
from argosy_runtime.backends.parameters import declared_adapters
from argosy_runtime.modelconfig.parameters.adapters import reserved_rank

_UNCHECKED: Final = ("adapter_model.bin", "adapter_model.pt")


class Adapters:
    """The adapters that requests may name. vLLM knows them by numbers, which are not used again.

    `base`: the configuration of the model's text part, as Hugging Face has it; None where it is not known.
    """

    def __init__(self, model: str, request_class: Any, base: Any) -> None:
        hidden, layers = (getattr(base, size, None) or 0 for size in ("hidden_size", "num_hidden_layers"))
        self._base = BaseModel(model, hidden, layers, _UNCHECKED)
        self._class = request_class
        self._numbers = itertools.count(1)
        self._named: NamedAdapters[Any] = NamedAdapters(model)
        self._uses: Counter[int] = Counter()
        self._lock = threading.Lock()

    def new(self, name: str, path: str) -> Any:
        """Return the `LoRARequest` of a new adapter. Raises ServingError where its files are missing or do not fit."""
        adapter_rank(self._base, name, Path(path))
        return self._class(name, next(self._numbers), path)

    def put(self, request: Any) -> Any | None:
        """Let requests name an adapter. Return the one that had the name before."""
        return self._named.put(request.lora_name, request)

    def remove(self, name: str) -> Any:
        """Remove an adapter, and return it. Raises ServingError (NOT_FOUND)."""
        with self._lock:
            return self._named.remove(name)

    def acquire(self, name: str) -> Any:
        """Return an adapter for a request, which releases it when it is over. Raises ServingError (NOT_FOUND)."""
        with self._lock:
            request = self._named.find(name)
            self._uses[request.lora_int_id] += 1
            return request

    def release(self, request: Any) -> None:
        """Note that a request with an adapter is over."""
        with self._lock:
            self._uses[request.lora_int_id] -= 1

    def in_use(self, request: Any) -> bool:
        """Return whether requests with an adapter run; vLLM would load it again for them."""
        return self._uses[request.lora_int_id] > 0


def adapter_paths(config: ModelConfig, version_dir: Path) -> dict[str, str]:
    """Return the paths of the adapters that a model lists, by name. The server loads them once the engine runs.

    Raises ServingError (INVALID_ARG).
    """
    return {adapter.name: adapter.path for adapter in declared_adapters(config, version_dir)}


def lora_arguments(arguments: Mapping[str, Any], paths: Mapping[str, str], on_cpu: bool) -> dict[str, Any]:
    """Return the arguments of an engine with these adapters, where `arguments` leave them open."""
    if not paths and not arguments.get("enable_lora"):
        return {}
    added: dict[str, Any] = {"enable_lora": True}
    added["max_lora_rank"] = reserved_rank(largest_rank(map(Path, paths.values())))
    if on_cpu:
        # With 1, vLLM on a CPU answers requests without an adapter with its weights, if both are in one batch.
        added["max_loras"] = max(2, len(paths))
    added = {name: value for name, value in added.items() if name not in arguments or name == "enable_lora"}
    if on_cpu and arguments.get("max_loras") == 1:
        added["max_loras"] = 2
    return added
