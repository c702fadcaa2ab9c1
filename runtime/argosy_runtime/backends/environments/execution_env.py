"""EXECUTION_ENV_PATH: a model's own environment, as a folder or a conda-pack archive.

Its interpreter runs the model's process where it has one (`bin/python`); else the server's does, with its packages
before the server's.
"""

import sys
from dataclasses import replace
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_common.engine_folders import interpreter_in
from argosy_common.tarballs import BROKEN_TAR
from argosy_runtime.errors import ServingError, invalid, not_found

from .process import ProcessEnvironment, of_the_server
from .unpacked import Unpacked, unpack

PARAMETER = "EXECUTION_ENV_PATH"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"


class Environment:
    """A model's own environment; an unpacked one stays until `release`. `python`: its interpreter, if it has one."""

    def __init__(self, model: str, path: Path, root: Path, unpacked: Unpacked | None) -> None:
        self._model = model
        self._path = path
        self._root = root
        self._unpacked = unpacked
        self.python = interpreter_in(root)

    def packages(self) -> Path:
        """Return the folder of its packages for the Python that runs here. Raises ServingError where it has none."""
        running = f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = self._root / "lib" / running / "site-packages"
        if packages.is_dir():
            return packages
        others = sorted(folder.name for folder in (self._root / "lib").glob("python3.*"))
        raise self._refused(f"holds {', '.join(others) or 'no Python'}, but this server runs {running}")

    def runs_here(self) -> bool:
        """Return whether this process was started by the environment's interpreter, so that its packages are found."""
        return self.python is not None and Path(sys.prefix).resolve() == self._root.resolve()

    def process(self) -> ProcessEnvironment:
        """Return the environment of the model's process: its interpreter's, or the server's with its packages first.

        Raises ServingError, and releases it then.
        """
        try:
            return replace(self._process(), release=self.release)
        except BaseException:
            self.release()
            raise

    def _process(self) -> ProcessEnvironment:
        if self.python is not None:
            # Imported where it is used: models' processes need none of it.
            from argosy_runtime.backends.environments.inspection import environment_with

            return environment_with(self.python, self._refused)
        packages, root = self.packages(), self._root
        first = {"PYTHONPATH": str(packages), "PATH": str(root / "bin"), "LD_LIBRARY_PATH": str(root / "lib")}
        return replace(of_the_server(first), packages=packages)

    def _refused(self, reason: str) -> ServingError:
        return invalid(f"model '{self._model}': {PARAMETER} '{self._path}' {reason}")

    def release(self) -> None:
        """Release the environment: an unpacked one may be removed."""
        if self._unpacked is not None:
            self._unpacked.release()


def environment_of(config: ModelConfig, model_dir: Path) -> Environment | None:
    """Return the environment of a model, unpacked if need be; None where the model names none.

    Raises ServingError where it does not exist or cannot be unpacked.
    """
    configured = config.parameters[PARAMETER].string_value if PARAMETER in config.parameters else ""
    if not configured:
        return None
    path = Path(configured.replace(_MODEL_DIRECTORY, str(model_dir)))
    if not path.exists():
        raise not_found(f"model '{config.name}': {PARAMETER} '{path}' does not exist")
    if path.is_dir():
        return Environment(config.name, path, path, None)
    try:
        unpacked = unpack(path)
    except (*BROKEN_TAR, OSError) as error:
        raise invalid(f"model '{config.name}': {PARAMETER} '{path}' cannot be unpacked: {error}") from error
    return Environment(config.name, path, unpacked.folder, unpacked)
