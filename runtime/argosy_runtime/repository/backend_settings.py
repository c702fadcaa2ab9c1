"""`--backend-config`: what the command line says to backends, for one of them or for all.

A backend reads its settings as parameters while it completes a configuration; a model's own parameter of the same name
comes first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import ModelConfig

OBEYED = {"default-max-batch-size": "onnxruntime"}
"""The settings that act, and the backend that reads each."""


@dataclass(frozen=True, slots=True)
class BackendSetting:
    """`<backend>,<name>=<value>`; without a backend it is for all."""

    backend: str
    name: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "BackendSetting":
        """Read one. Raises ValueError that says what is wrong."""
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
        """Whether anything changes with it."""
        return self.name in OBEYED and self.backend in ("", OBEYED[self.name])


def with_settings(config: ModelConfig, settings: Sequence[BackendSetting]) -> ModelConfig:
    """Return a copy with the settings for its backend as parameters; those for it alone before those for all."""
    given = ModelConfig()
    given.CopyFrom(config)
    for setting in sorted(settings, key=lambda setting: not setting.backend):
        name = setting.name
        if setting.acts and config.backend == OBEYED[name] and name not in given.parameters:
            given.parameters[name].string_value = setting.value
    return given


def without_settings(completed: ModelConfig, config: ModelConfig) -> ModelConfig:
    """Return what a backend made of `with_settings(config)`, with the parameters of `config` alone."""
    for name in OBEYED:
        if name in completed.parameters and name not in config.parameters:
            del completed.parameters[name]
    return completed
