"""Typed reading of a configuration's `parameters`, which are all strings, and of the adapters that a model lists."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid
from argosy_runtime.modelconfig.errors import ConfigError
from argosy_runtime.modelconfig.parameters.adapters import MULTI_LORA_JSON, DeclaredAdapter, listed_adapters

T = TypeVar("T")

_TRUE = ("true", "on", "yes", "1")
_FALSE = ("false", "off", "no", "0")


def declared_adapters(config: ModelConfig, version_dir: Path) -> tuple[DeclaredAdapter, ...]:
    """Return the adapters that a model lists in its parameter and in its version's `multi_lora.json`.

    Their paths are those of folders, no longer relative. Raises ServingError (INVALID_ARG).
    """
    file = version_dir / MULTI_LORA_JSON
    try:
        listed = listed_adapters(config, file.read_bytes() if file.is_file() else None)
    except OSError as error:
        raise invalid(f"model '{config.name}': '{file}' cannot be read: {error}") from error
    except ConfigError as error:
        raise invalid(str(error)) from error
    return tuple(msgspec.structs.replace(adapter, path=str(version_dir / adapter.path)) for adapter in listed)


class Parameters:
    """A model's parameters, typed on request.

    Every getter raises ServingError that names the parameter and its value.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._model = config.name
        self._values: dict[str, str] = {key: value.string_value for key, value in config.parameters.items()}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def starting_with(self, prefix: str) -> dict[str, str]:
        """Return the parameters whose names begin with a prefix."""
        return {name: value for name, value in self._values.items() if name.startswith(prefix)}

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as it is written."""
        return self._values.get(name, default)

    def integer(self, name: str, default: int, minimum: int | None = None, maximum: int | None = None) -> int:
        """Return an integer."""
        number = self._read(name, default, int, "a whole number")
        if minimum is not None and number < minimum:
            raise invalid(f"model '{self._model}': parameter '{name}' is {number}, expected {minimum} or more")
        if maximum is not None and number > maximum:
            raise invalid(f"model '{self._model}': parameter '{name}' is {number}, expected {maximum} or less")
        return number

    def number(self, name: str, default: float) -> float:
        """Return a number, neither infinite nor NaN."""
        return self._read(name, default, _finite, "a number")

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean: true or false, on or off, yes or no, 1 or 0."""
        return self._read(name, default, _flag, "true or false")

    def _read(self, name: str, default: T, parse: Callable[[str], T], expected: str) -> T:
        if name not in self._values:
            return default
        try:
            return parse(self._values[name].strip())
        except ValueError:
            raise invalid(
                f"model '{self._model}': parameter '{name}' is '{self._values[name]}', expected {expected}"
            ) from None


def _finite(value: str) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _flag(value: str) -> bool:
    lowered = value.lower()
    if lowered not in (*_TRUE, *_FALSE):
        raise ValueError(value)
    return lowered in _TRUE
