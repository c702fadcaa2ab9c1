"""The traffic of a model's versions as its folder declares it, read before and apart from a load."""

from dataclasses import dataclass
from itertools import count
from typing import Final

from argosy_runtime.errors import invalid
from argosy_runtime.modelconfig import ConfigError
from argosy_runtime.modelconfig.parameters.traffic import PARAMETER, VersionTraffic, version_traffic
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.preparing import declared_config

_numbers: Final = count(1)


@dataclass(frozen=True, slots=True)
class DeclaredTraffic:
    """The division of requests that a load or an unload declares. `number`: greater of those that came later."""

    number: int
    traffic: VersionTraffic | None


NOTHING_DECLARED: Final = DeclaredTraffic(0, None)
"""The division of a model before its first load."""


def next_number() -> int:
    """Return the number of a declaration that is to be read now. Take it before the folder is read: a read that takes
    longer than a later one then does not overrule what that found.
    """
    return next(_numbers)


def undeclared() -> DeclaredTraffic:
    """Return that the requests are not divided, as of now."""
    return DeclaredTraffic(next_number(), None)


def declared_traffic(
    number: int, folder: ModelFolder, override: str | None, required: bool = False
) -> DeclaredTraffic | None:
    """Return the division that a folder declares. None where its configuration cannot be read: its load fails.

    `number` was taken before the folder was read. Where the division is `required`, raises ServingError for such a
    configuration, and for one that declares none.
    """
    # To parse thousands of configurations only to learn that they declare none takes seconds.
    if PARAMETER not in (override or folder.config_text or ""):
        if required:
            raise invalid(f"the configuration of model '{folder.name}' has no parameter '{PARAMETER}'")
        return DeclaredTraffic(number, None)
    try:
        return DeclaredTraffic(number, version_traffic(declared_config(folder, override)))
    except ConfigError as error:
        if required:
            raise invalid(str(error)) from error
        return None
