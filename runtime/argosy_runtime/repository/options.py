"""Options of the repositories: the server's flags, and `--backend-config`.

A backend reads its settings as parameters while it completes a configuration; a model's own parameter of the same name
comes first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

OBEYED = {"default-max-batch-size": "onnxruntime"}
"""The settings with an effect, and the backend that reads each."""


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
        if setting.acts and not (value.isascii() and value.isdigit()):
            raise ValueError(f"'{text}': {name} must be a whole number from 0 on")
        return setting

    @property
    def acts(self) -> bool:
        """True if the setting has an effect."""
        return self.name in OBEYED and self.backend in ("", OBEYED[self.name])


def with_settings(config: ModelConfig, settings: Sequence[BackendSetting]) -> ModelConfig:
    """Return a copy with the backend's settings as parameters; those for it alone come before those for all."""
    result = ModelConfig()
    result.CopyFrom(config)
    for setting in sorted(settings, key=lambda setting: not setting.backend):
        name = setting.name
        if setting.acts and config.backend == OBEYED[name] and name not in result.parameters:
            result.parameters[name].string_value = setting.value
    return result


def without_settings(completed: ModelConfig, config: ModelConfig) -> ModelConfig:
    """Return the backend's completion of `with_settings(config)`, with the parameters of `config` alone."""
    for name in OBEYED:
        if name in completed.parameters and name not in config.parameters:
            del completed.parameters[name]
    return completed


class ControlMode(StrEnum):
    """Control of which models are loaded: the folder at start, the folder at any time, or the clients."""

    NONE = "none"
    POLL = "poll"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class RepositoryOptions:
    """Paths and policies. Times in seconds. `overrides`: a client's load may bring a configuration or files."""

    paths: tuple[Path, ...]
    control_mode: ControlMode = ControlMode.NONE
    startup_models: tuple[str, ...] = ()
    poll_seconds: float = 15.0
    autocomplete: bool = True
    config_name: str = ""
    load_timeout: float = 600.0
    unload_grace: float = 30.0
    parallel_loads: int = 4
    backend_settings: tuple[BackendSetting, ...] = ()
    overrides: bool = True
