"""Import of a model's `model.py` under a name of its own, so that many models can share one interpreter."""

import importlib
import importlib.util
import itertools
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid, not_found

from . import pb_utils
from .pb_utils import TritonModelException

UTILS = "triton_python_backend_utils"
_counter = itertools.count()
# Triton starts a model's process by a command with these names in it.
_FORBIDDEN = frozenset(";|&$`<>()[]{}\\\"'*?~#!")
# The environment variable with the module that a model's process offers to its children.
_OFFERED = "ARGOSY_MODEL_MODULE"


def check_name(name: str) -> None:
    """Raise ServingError, with Triton's words, for the name of a model or instance that it does not start."""
    if not _FORBIDDEN.isdisjoint(name):
        raise invalid("Invalid stub name: contains invalid characters")


def model_file(config: ModelConfig, version_dir: Path) -> Path:
    """Return the file to import: config's default_model_filename, or `model.py`.

    Raises ServingError where there is none.
    """
    path = version_dir / (config.default_model_filename or "model.py")
    if not path.is_file():
        raise not_found(f"Python model file not found in '{path}'")
    if path.suffix != ".py":
        raise TritonModelException(f"Model name must end with '.py'. Model name is \"{path.name}\".")
    return path


class LoadedModel:
    """A model's module, imported in a package of its own whose folder is the version's: relative imports work."""

    def __init__(self, name: str, path: Path) -> None:
        self.package = f"_argosy_model_{re.sub(r'[^0-9A-Za-z]', '_', name)}_{next(_counter)}"
        self._path = str(path)
        register_utils()
        _add_package(self.package, path)
        try:
            self.module: ModuleType | None = _import_file(f"{self.package}.model", path)
            self.model_class: Any = self._find_class(path)
        except BaseException:
            self.unload()
            raise

    def offer_to_children(self) -> None:
        """Let processes that the model spawns by multiprocessing import the model by its name."""
        os.environ[_OFFERED] = json.dumps([self.package, self._path])

    def _find_class(self, path: Path) -> Any:
        model_class = getattr(self.module, "TritonPythonModel", None)
        if model_class is None:
            raise AttributeError(f"module '{path.parent.name}.{path.stem}' has no attribute 'TritonPythonModel'")
        return model_class

    def unload(self) -> None:
        """Remove the module, its class, and its imports from its own folder."""
        self.module = self.model_class = None
        for name in [name for name in sys.modules if name == self.package or name.startswith(self.package + ".")]:
            del sys.modules[name]


def adopt() -> None:
    """Make `model.py` importable by name in a process that a model's process has spawned, for unpickling."""
    if offered := os.environ.get(_OFFERED):
        package, path = json.loads(offered)
        register_utils()
        _add_package(package, Path(path))
        sys.meta_path.append(_Offered(f"{package}.model", path))


class _Offered(MetaPathFinder):
    """A finder of one module, whose file may have any name."""

    def __init__(self, name: str, path: str) -> None:
        self._name = name
        self._path = path

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return _spec(fullname, Path(self._path)) if fullname == self._name else None


def _add_package(name: str, path: Path) -> None:
    package = ModuleType(name)
    package.__path__ = [str(path.parent)]
    sys.modules[name] = package


class _SourceOnly(SourceFileLoader):
    """A loader that compiles the file as it is now.

    Cached bytecode is valid by the second, and a reload can be faster than that.
    """

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _spec(name: str, path: Path) -> ModuleSpec | None:
    return importlib.util.spec_from_file_location(name, path, loader=_SourceOnly(name, str(path)))


def _import_file(name: str, path: Path) -> ModuleType:
    # By the interpreter's own import, so that an error has the frames that it has in Triton.
    finder = _Offered(name, str(path))
    sys.meta_path.insert(0, finder)
    try:
        __import__(name)
    finally:
        sys.meta_path.remove(finder)
    return sys.modules[name]


def register_utils() -> None:
    """Make `import triton_python_backend_utils` find this package's module."""
    sys.modules.setdefault(UTILS, pb_utils)
    sys.modules.setdefault("c_python_backend_utils", pb_utils)


def extend_path(folders: list[Path]) -> None:
    """Let a model that has the process to itself import modules of its folders."""
    sys.path.extend(str(folder) for folder in folders if str(folder) not in sys.path)
    importlib.invalidate_caches()


@contextmanager
def borrowed_path(folders: list[Path]) -> Iterator[None]:
    """Extend the path for the time of the block. Modules imported from `folders` are removed afterwards."""
    before, modules = list(sys.path), set(sys.modules)
    extend_path(folders)
    try:
        yield
    finally:
        sys.path[:] = before
        for name in set(sys.modules) - modules:
            if any(_lies_in(sys.modules[name], folder) for folder in folders):
                del sys.modules[name]


def _lies_in(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(folder)
