"""LoRA adapters of one engine: names, paths, numbers."""

import itertools
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.parameters import declared_adapters
from argosy_runtime.errors import not_found
from argosy_runtime.modelconfig.parameters.adapters import reserved_rank

from .opening.adapter_files import check_adapter


class Adapters:
    """The adapters that requests may name. vLLM knows them by numbers, which are not used again.

    `base`: the configuration of the model's text part, as Hugging Face has it; None where it is not known.
    """

    def __init__(self, model: str, request_class: Any, base: Any) -> None:
        self._model = model
        self._base = base
        self._class = request_class
        self._numbers = itertools.count(1)
        self._requests: dict[str, Any] = {}
        self._uses: Counter[int] = Counter()
        self._lock = threading.Lock()

    def new(self, name: str, path: str) -> Any:
        """Return the `LoRARequest` of a new adapter. Raises ServingError where its files are missing or do not fit."""
        check_adapter(self._model, name, Path(path), self._base)
        return self._class(name, next(self._numbers), path)

    def put(self, request: Any) -> Any | None:
        """Let requests name an adapter. Return the one that had the name before."""
        before = self._requests.get(request.lora_name)
        self._requests[request.lora_name] = request
        return before

    def remove(self, name: str) -> Any:
        """Remove an adapter, and return it. Raises ServingError (NOT_FOUND)."""
        with self._lock:
            request = self.find(name)
            del self._requests[name]
            return request

    def acquire(self, name: str) -> Any:
        """Return an adapter for a request, which releases it when it is over. Raises ServingError (NOT_FOUND)."""
        with self._lock:
            request = self.find(name)
            self._uses[request.lora_int_id] += 1
            return request

    def release(self, request: Any) -> None:
        """Note that a request with an adapter is over."""
        with self._lock:
            self._uses[request.lora_int_id] -= 1

    def in_use(self, request: Any) -> bool:
        """Return whether requests with an adapter run; vLLM would load it again for them."""
        return self._uses[request.lora_int_id] > 0

    def find(self, name: str) -> Any:
        """Return an adapter. Raises ServingError (NOT_FOUND)."""
        request = self._requests.get(name)
        if request is None:
            there = ", ".join(sorted(self._requests)) or "none"
            raise not_found(f"model '{self._model}' has no adapter '{name}'; it has {there}")
        return request


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
    rank = max([_rank(Path(path)) for path in paths.values()], default=0)
    added["max_lora_rank"] = reserved_rank(rank)
    if on_cpu:
        # With 1, vLLM on a CPU answers requests without an adapter with its weights, if both are in one batch.
        added["max_loras"] = max(2, len(paths))
    added = {name: value for name, value in added.items() if name not in arguments or name == "enable_lora"}
    if on_cpu and arguments.get("max_loras") == 1:
        added["max_loras"] = 2
    return added


def _rank(path: Path) -> int:
    try:
        return int(msgspec.json.decode((path / "adapter_config.json").read_bytes()).get("r", 0))
    except (OSError, ValueError, RecursionError, TypeError, AttributeError):
        return 0  # `new` says what is wrong with it
