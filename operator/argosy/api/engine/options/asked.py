"""What an engine is asked to be, as the rules between options read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.api.engine.precision import Precision
from argosy.api.values.base import Fault


@dataclass(frozen=True, slots=True)
class Asked:
    """`options` are those that are right by themselves; `calibrated`: there is data to calibrate with."""

    precision: Precision | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    calibrated: bool = False

    def has(self, *names: str) -> bool:
        """Return whether all of these are set."""
        return all(name in self.options for name in names)

    def on(self, name: str) -> bool:
        """Return whether a flag is set to true."""
        return self.options.get(name) is True

    def off(self, name: str) -> bool:
        """Return whether a flag is set to false."""
        return self.options.get(name) is False

    def number(self, name: str, default: int = 0) -> int:
        """Return a whole number, or what holds without it."""
        return int(self.options.get(name, default))


@dataclass(frozen=True, slots=True)
class Split:
    """How a model is split, and how large its batches are. `batch_size` 0: nobody says."""

    tensor: int = 1
    pipeline: int = 1
    batch_size: int = 0


def wrong(name: str, message: str) -> Fault:
    """Return a fault of one option, relative to the engine."""
    return Fault(message, ("options", name))
