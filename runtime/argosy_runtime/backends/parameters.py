"""Typed reading of a configuration's `parameters`, which are all strings."""

from collections.abc import Callable
from typing import TypeVar

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid

T = TypeVar("T")

_TRUE = ("true", "on", "yes", "1")
_FALSE = ("false", "off", "no", "0")


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

    def integer(self, name: str, default: int, minimum: int | None = None) -> int:
        """Return an integer."""
        number = self._read(name, default, int, "a whole number")
        if minimum is not None and number < minimum:
            raise invalid(f"model '{self._model}': parameter '{name}' is {number}, expected {minimum} or more")
        return number

    def number(self, name: str, default: float) -> float:
        """Return a number."""
        return self._read(name, default, float, "a number")

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


def _flag(value: str) -> bool:
    lowered = value.lower()
    if lowered not in (*_TRUE, *_FALSE):
        raise ValueError(value)
    return lowered in _TRUE
