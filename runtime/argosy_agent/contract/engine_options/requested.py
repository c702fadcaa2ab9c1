"""The engine that is requested, as the rules between options read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .option import Fault
from .precisions import Precision


@dataclass(frozen=True, slots=True)
class RequestedEngine:
    """A requested engine. `options` are those whose values are valid; `calibrated`: there is calibration data."""

    precision: Precision | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    calibrated: bool = False

    def has(self, *names: str) -> bool:
        """Return whether all of these options are set."""
        return all(name in self.options for name in names)

    def on(self, name: str) -> bool:
        """Return whether a flag is set to true."""
        return self.options.get(name) is True

    def off(self, name: str) -> bool:
        """Return whether a flag is set to false."""
        return self.options.get(name) is False

    def number(self, name: str, default: int = 0) -> int:
        """Return the whole number of an option, or the default where it is not set."""
        return int(self.options.get(name, default))


@dataclass(frozen=True, slots=True)
class DeclaredSizes:
    """The parallelism and the largest batch that a model declares. A `batch_size` of 0 is unknown."""

    tensor: int = 1
    pipeline: int = 1
    batch_size: int = 0


def fault(name: str, message: str) -> Fault:
    """Return an error of the option `name`."""
    return Fault(message, ("options", name))
