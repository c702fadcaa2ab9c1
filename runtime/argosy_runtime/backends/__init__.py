"""Frameworks that run models: one file or folder per backend, each imported only when a model asks for it.

What may live here: modules that follow `contract`, and what several of them share (`batching`). A backend
knows nothing of schedulers, processes or wire formats; it sees an `InstanceSpec`, a `Host` and a
`Responder`.
"""

import importlib
from pathlib import Path
from typing import Protocol, cast

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, ServingError, invalid

from .contract import Host, InstanceSpec, Isolation, ModelInstance

_EXTRAS = {
    "onnxruntime": {"onnxruntime": "onnxruntime"},
    "pytorch": {"torch": "pytorch"},
    "transformers": {"torch": "transformers", "transformers": "transformers"},
}
"""Backend → package it needs → the extra of argosy that installs it."""

_ALIASES = {"libtorch": "pytorch"}
_MODULES = {name: f"{__name__}.{name}" for name in ("python", *_EXTRAS)}


class Backend(Protocol):
    """What `resolve` returns: a module with the three things the contract names."""

    ISOLATION: Isolation

    def complete_config(self, model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
        """A copy of `config` with what the model file itself knows filled in. Raises ServingError."""

    def load(self, spec: InstanceSpec, host: Host) -> ModelInstance:
        """One loaded instance. Raises ServingError, or anything the framework or the model raises."""


def names() -> tuple[str, ...]:
    """Every backend this server knows, installed or not."""
    return tuple(_MODULES)


def resolve(name: str) -> Backend:
    """The backend called `name`, imported on first use.

    Raises ServingError: INVALID_ARG where there is no such backend, UNAVAILABLE where its package is not
    installed.
    """
    known = _ALIASES.get(name, name)
    if known not in _MODULES:
        raise invalid(
            f"unable to find backend library for backend '{name}', try specifying runtime on the model configuration."
        )
    try:
        return cast(Backend, importlib.import_module(_MODULES[known]))
    except ModuleNotFoundError as missing:
        raise _not_installed(known, missing) from missing


def _not_installed(backend: str, missing: ModuleNotFoundError) -> ServingError:
    package = (missing.name or "").partition(".")[0]
    extra = _EXTRAS.get(backend, {}).get(package)
    advice = f": pip install 'argosy[{extra}]'" if extra else ""
    return ServingError(
        ErrorKind.UNAVAILABLE,
        f"backend '{backend}' needs the package '{package}', which is not installed{advice}",
    )


__all__ = ["Backend", "names", "resolve"]
