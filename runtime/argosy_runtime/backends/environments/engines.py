"""Engine environments: folders with an interpreter and one engine's packages, by the backend's name.

An engine such as vLLM pins packages that no other engine and not the server can share. Its models' processes therefore
run in an environment of its own. `argosy engines install` makes one; an image has them in /opt/argosy/engines.
"""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from argosy_runtime.errors import ServingError, unavailable

from .inspection import environment_with
from .process import ProcessEnvironment, interpreter_in, of_the_server

FOLDERS: Final = "ARGOSY_ENGINES"
"""The environment variable with folders that are searched, separated as those of PATH."""

_SYSTEM_WIDE: Final = Path("/opt/argosy/engines")


def users_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of this user's engine environments, by the XDG base directory specification."""
    data = variables.get("XDG_DATA_HOME", "")
    base = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"
    return base / "argosy" / "engines"


def folders(variables: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the folders that are searched for engine environments, in this order."""
    configured = [Path(folder) for folder in variables.get(FOLDERS, "").split(os.pathsep) if folder]
    return configured or [users_folder(variables), _SYSTEM_WIDE]


def engine_environment(model: str, backend: str, package: str, configured: Path | None) -> ProcessEnvironment:
    """Return the environment of an engine's model: the configured folder, the server's, or the first that is found.

    `package` is the engine's, as it is imported. Raises ServingError: UNAVAILABLE where there is none.
    """
    if configured is not None:
        return _environment(model, backend, configured)
    if find_spec(package) is not None:
        return of_the_server()
    for folder in folders():
        if interpreter_in(folder / backend) is not None:
            return _environment(model, backend, folder / backend)
    raise unavailable(
        f"model '{model}': backend '{backend}' needs the package '{package}', which is neither installed for the "
        f"server nor in an environment of its own ({', '.join(str(folder / backend) for folder in folders())}): "
        f"argosy engines install {backend}"
    )


def _environment(model: str, backend: str, folder: Path) -> ProcessEnvironment:
    python = interpreter_in(folder)
    if python is None:
        raise unavailable(
            f"model '{model}': the environment '{folder}' of backend '{backend}' has no interpreter bin/python"
        )

    def refuse(reason: str) -> ServingError:
        return unavailable(f"model '{model}': the environment '{folder}' of backend '{backend}' {reason}")

    return environment_with(python, refuse)
