"""EXECUTION_ENV_PATH: packages a Python model brings along, as a folder or a conda-pack archive."""

import sys
from importlib.metadata import distributions, version
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_common.tarballs import BROKEN_TAR
from argosy_runtime.backends.unpacked import Unpacked, unpack
from argosy_runtime.errors import invalid, not_found

PARAMETER = "EXECUTION_ENV_PATH"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"


# What a model's process cannot start without.
_NEEDED = ("numpy", "protobuf", "msgspec", "ml-dtypes", "tritonclient")


class Environment:
    """What a model brings along; where it was unpacked it stays until `release`. `packages`: its site-packages."""

    def __init__(self, packages: Path, unpacked: Unpacked | None) -> None:
        self.packages = packages
        self._unpacked = unpacked

    def variables(self) -> dict[str, str]:
        """Return what a model's process is to find before all else, by the variable that lists such folders."""
        root = self.packages.parents[2]
        return {"PYTHONPATH": str(self.packages), "PATH": str(root / "bin"), "LD_LIBRARY_PATH": str(root / "lib")}

    def replaced(self) -> list[str]:
        """Return which packages of the server's another version stands in for there, with both versions."""
        found = []
        for name in _NEEDED:
            brought = next(iter(distributions(name=name, path=[str(self.packages)])), None)
            if brought is not None and brought.version != (own := version(name)):
                found.append(f"{name} {brought.version} for {own}")
        return found

    def release(self) -> None:
        """Give the environment up."""
        if self._unpacked is not None:
            self._unpacked.release()


def environment_of(config: ModelConfig, model_dir: Path) -> Environment | None:
    """Return the environment of a model, unpacked if need be; None where the model names none.

    Raises ServingError where it does not exist or was made for another Python.
    """
    given = config.parameters[PARAMETER].string_value if PARAMETER in config.parameters else ""
    if not given:
        return None
    path = Path(given.replace(_MODEL_DIRECTORY, str(model_dir)))
    if not path.exists():
        raise not_found(f"model '{config.name}': {PARAMETER} '{path}' does not exist")
    if path.is_dir():
        return Environment(_packages_of(config.name, path, path), None)
    try:
        unpacked = unpack(path)
    except (*BROKEN_TAR, OSError) as error:
        raise invalid(f"model '{config.name}': {PARAMETER} '{path}' cannot be unpacked: {error}") from error
    try:
        return Environment(_packages_of(config.name, path, unpacked.folder), unpacked)
    except BaseException:
        unpacked.release()
        raise


def _packages_of(model: str, given: Path, root: Path) -> Path:
    running = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = root / "lib" / running / "site-packages"
    if found.is_dir():
        return found
    others = sorted(folder.name for folder in (root / "lib").glob("python3.*"))
    raise invalid(
        f"model '{model}': {PARAMETER} '{given}' holds {', '.join(others) or 'no Python'}, "
        f"but this server runs {running}"
    )
