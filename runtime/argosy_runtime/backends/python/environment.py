"""EXECUTION_ENV_PATH: packages a Python model brings along, as a folder or a conda-pack archive."""

import hashlib
import os
import shutil
import sys
import tempfile
from importlib.metadata import distributions, version
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError, invalid, not_found
from argosy_runtime.shared.tarballs import BROKEN_TAR, extract_all, opened

PARAMETER = "EXECUTION_ENV_PATH"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"


# What a model's process cannot start without.
_NEEDED = ("numpy", "protobuf", "msgspec", "ml-dtypes", "tritonclient")


def variables(config: ModelConfig, model_dir: Path) -> dict[str, str]:
    """What a model's process is to find before all else, by the variable that lists such folders.

    Raises ServingError as `site_packages`.
    """
    packages = site_packages(config, model_dir)
    if packages is None:
        return {}
    root = packages.parents[2]
    return {"PYTHONPATH": str(packages), "PATH": str(root / "bin"), "LD_LIBRARY_PATH": str(root / "lib")}


def replaced(packages: str) -> list[str]:
    """Which packages of the server's another version stands in for there, with both versions."""
    found = []
    for name in _NEEDED:
        brought = next(iter(distributions(name=name, path=[packages])), None)
        if brought is not None and brought.version != (own := version(name)):
            found.append(f"{name} {brought.version} for {own}")
    return found


def site_packages(config: ModelConfig, model_dir: Path) -> Path | None:
    """The site-packages folder of the model's environment, unpacked if need be; None where the model names
    none.

    Raises ServingError where it does not exist or was made for another Python.
    """
    given = config.parameters[PARAMETER].string_value if PARAMETER in config.parameters else ""
    if not given:
        return None
    path = Path(given.replace(_MODEL_DIRECTORY, str(model_dir)))
    if not path.exists():
        raise not_found(f"model '{config.name}': {PARAMETER} '{path}' does not exist")
    root = path if path.is_dir() else _unpacked(config.name, path)
    return _packages_of(config.name, path, root)


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


def _unpacked(model: str, archive: Path) -> Path:
    """The archive's contents, in a folder named after its path, size and time so that it is unpacked once."""
    stat = archive.stat()
    key = hashlib.sha256(f"{archive.resolve()}:{stat.st_size}:{stat.st_mtime_ns}".encode()).hexdigest()[:24]
    target = Path(tempfile.gettempdir()) / f"argosy-env-{os.getuid()}-{key}"
    if target.is_dir():
        return target
    partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        with opened(archive) as contents:
            extract_all(contents, partial)
        _publish(partial, target)
    except (*BROKEN_TAR, OSError) as error:
        raise _bad_archive(model, archive, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _publish(partial: Path, target: Path) -> None:
    """Rename `partial` to `target`, unless another process has put the same contents there. Raises OSError."""
    try:
        partial.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _bad_archive(model: str, archive: Path, error: Exception) -> ServingError:
    return invalid(f"model '{model}': {PARAMETER} '{archive}' cannot be unpacked: {error}")
