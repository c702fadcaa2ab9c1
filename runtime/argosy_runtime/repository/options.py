"""Options of the repositories: the server's flags, and `--backend-config`.

ONNX Runtime's backend reads its setting as a parameter while it completes a configuration; a model's own parameter of
the same name comes first. The setting `environment` of an engine's backend is the folder that its models run in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import engine_backends
from argosy_runtime.backends.contract import HostPolicy
from argosy_runtime.scheduling.limits.resources import ResourceLimit
from argosy_runtime.telemetry.latencies.settings import DEFAULTS, MetricsSettings

_BATCH_SIZE: Final = "default-max-batch-size"
_ENVIRONMENT: Final = "environment"


@dataclass(frozen=True, slots=True)
class BackendSetting:
    """A setting `<backend>,<name>=<value>`; without a backend it is for all."""

    backend: str
    name: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "BackendSetting":
        """Read a setting. Raises ValueError with the reason."""
        backend, comma, rest = text.partition(",")
        name, equals, value = (rest if comma else text).partition("=")
        if not (equals and name and (backend or not comma)):
            raise ValueError(f"'{text}' is not of the form <backend>,<setting>=<value> or <setting>=<value>")
        setting = cls(backend if comma else "", name, value)
        if setting.acts and name == _BATCH_SIZE and not (value.isascii() and value.isdigit()):
            raise ValueError(f"'{text}': {name} must be a whole number from 0 on")
        if setting.acts and name == _ENVIRONMENT and not Path(value).is_absolute():
            raise ValueError(f"'{text}': {name} must be the absolute path of a folder")
        return setting

    @property
    def acts(self) -> bool:
        """True if the setting has an effect."""
        if self.name == _ENVIRONMENT:
            return self.backend in engine_backends()
        return self.name == _BATCH_SIZE and self.backend in ("", "onnxruntime")


def with_settings(config: ModelConfig, settings: Sequence[BackendSetting]) -> ModelConfig:
    """Return a copy with the backend's settings as parameters; those for it alone come before those for all."""
    result = ModelConfig()
    result.CopyFrom(config)
    for setting in sorted(settings, key=lambda setting: not setting.backend):
        unset = _BATCH_SIZE not in result.parameters
        if setting.acts and setting.name == _BATCH_SIZE and config.backend == "onnxruntime" and unset:
            result.parameters[_BATCH_SIZE].string_value = setting.value
    return result


def without_settings(completed: ModelConfig, config: ModelConfig) -> ModelConfig:
    """Return the backend's completion of `with_settings(config)`, with the parameters of `config` alone."""
    if _BATCH_SIZE in completed.parameters and _BATCH_SIZE not in config.parameters:
        del completed.parameters[_BATCH_SIZE]
    return completed


class ControlMode(StrEnum):
    """Control of which models are loaded: the folder at start, the folder at any time, or the clients."""

    NONE = "none"
    POLL = "poll"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class OnDemandOptions:
    """The memory of all models together, in bytes (0: no limit), and the seconds that a request waits at most."""

    memory_limit: int = 0
    wait_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class RepositoryOptions:
    """Paths and policies. Times in seconds. `overrides`: a client's load may bring a configuration or files.
    `gpu_limits`: the part of a GPU's memory that may be in use when another model is loaded there, by ordinal.
    `namespaces`: each repository is one, and models of several may share a name.

    `cache_bytes`: the size of the response cache, 0 for none. `rate_limits`: the resources of the rate limiter that
    flags declare, None where it is off.
    `requirements`: the folder of environments with models' requirements, None where models may not install any.
    """

    paths: tuple[Path, ...]
    control_mode: ControlMode = ControlMode.NONE
    startup_models: tuple[str, ...] = ()
    poll_seconds: float = 15.0
    autocomplete: bool = True
    namespaces: bool = False
    config_name: str = ""
    load_timeout: float = 600.0
    unload_grace: float = 30.0
    parallel_loads: int = 4
    load_retries: int = 0
    on_demand: OnDemandOptions | None = None
    backend_settings: tuple[BackendSetting, ...] = ()
    overrides: bool = True
    cache_bytes: int = 0
    rate_limits: tuple[ResourceLimit, ...] | None = None
    host_policies: Mapping[str, HostPolicy] = field(default_factory=dict)
    gpu_limits: Mapping[int, float] = field(default_factory=dict)
    metrics: MetricsSettings = DEFAULTS
    requirements: Path | None = None

    def environment(self, backend: str) -> Path | None:
        """Return the engine environment that a setting names for a backend: the last such setting's."""
        named = [s.value for s in self.backend_settings if s.acts and (s.backend, s.name) == (backend, _ENVIRONMENT)]
        return Path(named[-1]) if named else None
