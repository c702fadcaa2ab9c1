"""Engine environments: folders with an interpreter and one engine's packages, by the backend's name.

An engine such as vLLM pins packages that no other engine and not the server can share. Its models' processes therefore
run in an environment of its own. `argosy engines install` makes one; an image has them in /opt/argosy/engines.
"""

import os
from importlib.util import find_spec
from pathlib import Path

from argosy_common.engine_folders import interpreter_in, searched
from argosy_runtime.errors import ServingError, unavailable

from .inspection import environment_with
from .process import ProcessEnvironment, of_the_server


def engine_environment(model: str, backend: str, package: str, configured: Path | None) -> ProcessEnvironment:
    """Return the environment of an engine's model: the configured folder, the server's, or the first that is found.

    `package` is the engine's, as it is imported. Raises ServingError: UNAVAILABLE where there is none.
    """
    if configured is not None:
        return _environment(model, backend, configured)
    if _is_installed(package):
        return of_the_server()
    folders = [folder / backend for folder in searched(os.environ)]
    for folder in folders:
        if interpreter_in(folder) is not None:
            return _environment(model, backend, folder)
    raise unavailable(
        f"model '{model}': backend '{backend}' needs the package '{package}', which is neither installed for the "
        f"server nor in an environment of its own ({', '.join(map(str, folders))}): "
        f"argosy engines install {backend}"
    )


def _is_installed(package: str) -> bool:
    """Return whether the server has a package. A folder of that name without code is none."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None


def _environment(model: str, backend: str, folder: Path) -> ProcessEnvironment:
    # A later installation replaces the link to an environment, not the environment that this process runs in.
    python = interpreter_in(folder.resolve())
    if python is None:
        raise unavailable(
            f"model '{model}': the environment '{folder}' of backend '{backend}' has no interpreter bin/python"
        )

    def refuse(reason: str) -> ServingError:
        return unavailable(f"model '{model}': the environment '{folder}' of backend '{backend}' {reason}")

    return environment_with(python, refuse)
