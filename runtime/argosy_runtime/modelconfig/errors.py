"""Errors of a model's configuration.

ValueError
 └─ ConfigError   the configuration cannot be read or completed; the message names the line or the field

Violation         one broken rule of a configuration that could be read
"""

from dataclasses import dataclass


class ConfigError(ValueError):
    """A configuration that cannot be read or completed. `str(error)` is the message for operator and client."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: the path ("input[0].dims[1]"; "" is all of it) and the message, in Triton's words if any."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message
