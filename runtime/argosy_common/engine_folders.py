"""Where engine environments are: folders with the interpreter and the packages of one engine, by its backend's name."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "ARGOSY_ENGINES"
"""The environment variable with folders that are searched, separated as those of PATH."""

_SYSTEM_WIDE: Final = Path("/opt/argosy/engines")


def users_folder(variables: Mapping[str, str]) -> Path:
    """Return the folder of this user's engine environments, by the XDG base directory specification."""
    data = variables.get("XDG_DATA_HOME", "")
    base = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"
    return base / "argosy" / "engines"


def searched(variables: Mapping[str, str]) -> list[Path]:
    """Return the folders that are searched for engine environments, in this order."""
    configured = [Path(folder) for folder in variables.get(VARIABLE, "").split(os.pathsep) if folder]
    return configured or [users_folder(variables), _SYSTEM_WIDE]


def interpreter_in(environment: Path) -> Path | None:
    """Return the interpreter of an environment's folder; None where it has none."""
    python = environment / "bin" / "python"
    return python if os.access(python, os.X_OK) else None
