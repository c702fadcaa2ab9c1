"""Frameworks that run models: one file or folder per backend, each imported only when a model asks for it.

What may live here: modules that follow `contract`, and what several of them share (`batching`, `devices`, `engines`). A
backend does not depend on schedulers, processes or wire formats; it sees an `InstanceSpec`, a `Host` and a `Responder`.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, ServingError, invalid

from .contract import Host, InstanceSpec, Isolation, ModelInstance
from .missing import unable_to_find


@dataclass(frozen=True, slots=True)
class _Row:
    """One backend: where its instances run by default, and its packages with the extras that install them.

    `device_tensors`: its models take inputs that are in a device's memory. `engine`: the package that its models'
    processes run with, in an environment of its own; never imported by the server.
    """

    isolation: Isolation
    packages: Mapping[str, str] = field(default_factory=dict)
    device_tensors: bool = False
    engine: str = ""


_BACKENDS = {
    "python": _Row(Isolation.PROCESS),
    "onnxruntime": _Row(Isolation.THREAD, {"onnxruntime": "onnxruntime"}, device_tensors=True),
    "pytorch": _Row(Isolation.THREAD, {"torch": "pytorch"}, device_tensors=True),
    "fil": _Row(Isolation.PROCESS, {"treelite": "fil"}),
    "tensorrt": _Row(Isolation.THREAD, {"tensorrt": "tensorrt"}, device_tensors=True),
    "transformers": _Row(Isolation.PROCESS, {"torch": "transformers", "transformers": "transformers"}),
    "vllm": _Row(Isolation.PROCESS, engine="vllm"),
    "tensorrtllm": _Row(Isolation.PROCESS, engine="tensorrt_llm"),
}
_ALIASES = {"libtorch": "pytorch"}


class Backend(Protocol):
    """A module with the two functions of the contract, as `resolve` returns it."""

    def complete_config(self, model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
        """Return a copy of `config` with what the model file tells filled in. Raises ServingError."""

    def load(self, spec: InstanceSpec, host: Host) -> ModelInstance:
        """Return one loaded instance. Raises ServingError, or anything the framework or the model raises."""


def names() -> tuple[str, ...]:
    """Return the names of all backends, installed or not."""
    return tuple(_BACKENDS)


def isolation(config: ModelConfig) -> Isolation:
    """Return where a model's instances run: its parameter ISOLATION, or its backend's default. Raises ServingError."""
    value = config.parameters["ISOLATION"].string_value if "ISOLATION" in config.parameters else ""
    if not value:
        return default_isolation(config.backend)
    try:
        chosen = Isolation(value.lower())
    except ValueError:
        text = f"model '{config.name}': ISOLATION is '{value}'; it can be 'process' or 'thread'"
        raise invalid(text) from None
    if chosen is Isolation.THREAD and engine_package(config.backend):
        raise invalid(
            f"model '{config.name}': ISOLATION is 'thread', and backend '{config.backend}' runs in a process of its "
            "own alone, whose packages are not the server's"
        )
    return chosen


def default_isolation(name: str) -> Isolation:
    """Return where a backend's instances run by default. Imports nothing.

    Raises ServingError without such a backend.
    """
    return _BACKENDS[_canonical(name)].isolation


def takes_device_tensors(config: ModelConfig) -> bool:
    """Return whether a model takes tensors that another model of this process left in a device's memory.

    Imports nothing.
    """
    row = _BACKENDS.get(_ALIASES.get(config.backend, config.backend))
    return row is not None and row.device_tensors and isolation(config) is Isolation.THREAD


def engine_backends() -> frozenset[str]:
    """Return the backends whose models run in an engine environment."""
    return frozenset(name for name, row in _BACKENDS.items() if row.engine)


def engine_package(backend: str) -> str:
    """Return the package that models of an engine's backend run with, as it is imported; "" for other backends."""
    row = _BACKENDS.get(backend)
    return "" if row is None else row.engine


def brings_environment(config: ModelConfig) -> bool:
    """Return whether a model names an environment of its own for its process."""
    return "EXECUTION_ENV_PATH" in config.parameters and (
        config.backend == "python" or bool(engine_package(config.backend))
    )


def resolve(name: str) -> Backend:
    """Return a backend, imported on first use, which can take seconds: never call it on the event loop.

    Raises ServingError: INVALID_ARG where there is no such backend, UNAVAILABLE where its package is not installed.
    """
    backend = _canonical(name)
    try:
        return cast(Backend, importlib.import_module(f"{__name__}.{backend}"))
    except ModuleNotFoundError as missing:
        raise _not_installed(backend, missing) from missing


def _canonical(name: str) -> str:
    backend = _ALIASES.get(name, name)
    if backend not in _BACKENDS:
        raise invalid(unable_to_find(name))
    return backend


def _not_installed(backend: str, missing: ModuleNotFoundError) -> ServingError:
    package = (missing.name or "").partition(".")[0]
    row = _BACKENDS[backend]
    extra = row.packages.get(package)
    advice = f": pip install 'argosy[{extra}]'" if extra else ""
    if package == row.engine:
        advice = f": argosy engines install {backend}"
    return ServingError(
        ErrorKind.UNAVAILABLE,
        f"backend '{backend}' needs the package '{package}', which is not installed{advice}",
    )


__all__ = [
    "Backend",
    "brings_environment",
    "default_isolation",
    "engine_backends",
    "engine_package",
    "isolation",
    "names",
    "resolve",
    "takes_device_tensors",
]
