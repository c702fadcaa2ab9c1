"""EXECUTION_ENV_PATH: the packages of a Python model's own environment, as a folder or a conda-pack archive."""

import sys
from importlib.metadata import distributions, version
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_common.tarballs import BROKEN_TAR
from argosy_runtime.backends.unpacked import Unpacked, unpack
from argosy_runtime.errors import invalid, not_found

PARAMETER = "EXECUTION_ENV_PATH"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"


# Packages that a model's process cannot start without.
_NEEDED = ("numpy", "protobuf", "msgspec", "ml-dtypes", "tritonclient")


class Environment:
    """A model's own environment; an unpacked one stays until `release`. `packages`: its site-packages."""

    def __init__(self, packages: Path, unpacked: Unpacked | None) -> None:
        self.packages = packages
        self._unpacked = unpacked

    def variables(self) -> dict[str, str]:
        """Return the folders that a model's process searches first, by environment variable."""
        root = self.packages.parents[2]
        return {"PYTHONPATH": str(self.packages), "PATH": str(root / "bin"), "LD_LIBRARY_PATH": str(root / "lib")}

    def replaced(self) -> list[str]:
        """Return the server's packages that have another version in the environment, with both versions."""
        replaced = []
        for name in _NEEDED:
            brought = next(iter(distributions(name=name, path=[str(self.packages)])), None)
            if brought is not None and brought.version != (own := version(name)):
                replaced.append(f"{name} {brought.version} for {own}")
        return replaced

    def release(self) -> None:
        """Release the environment: an unpacked one may be removed."""
        if self._unpacked is not None:
            self._unpacked.release()


def environment_of(config: ModelConfig, model_dir: Path) -> Environment | None:
    """Return the environment of a model, unpacked if need be; None where the model names none.

    Raises ServingError where it does not exist or was made for another Python.
    """
    configured = config.parameters[PARAMETER].string_value if PARAMETER in config.parameters else ""
    if not configured:
        return None
    path = Path(configured.replace(_MODEL_DIRECTORY, str(model_dir)))
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


def _packages_of(model: str, path: Path, root: Path) -> Path:
    running = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = root / "lib" / running / "site-packages"
    if packages.is_dir():
        return packages
    others = sorted(folder.name for folder in (root / "lib").glob("python3.*"))
    raise invalid(
        f"model '{model}': {PARAMETER} '{path}' holds {', '.join(others) or 'no Python'}, "
        f"but this server runs {running}"
    )
