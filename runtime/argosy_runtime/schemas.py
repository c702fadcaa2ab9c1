"""NVIDIA's schemas without NVIDIA's client.

All packages use two protobuf modules of `tritonclient.grpc`. To import one of them runs that package: the client, and
gRPC's library under it, 20 MB and a tenth of a second in every process. The finder here gives the package a loader that
runs its code only once something other than a schema is read from it.
"""

import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

_PACKAGE: Final = "tritonclient.grpc"
_SCHEMAS: Final = frozenset(("model_config_pb2", "service_pb2"))


class _PostponedPackage(ModuleType):
    """The package, whose code runs with the first read of a name that it does not have yet."""

    def __init__(self, loader: Loader) -> None:
        super().__init__(_PACKAGE)
        self._code = loader
        self._running = threading.RLock()
        self._has_run = False

    def __getattr__(self, name: str) -> Any:
        # A schema is a submodule, which the import system loads after this lookup has failed.
        if name in _SCHEMAS or (name.startswith("__") and name != "__all__"):
            raise AttributeError(name)
        with self._running:
            if not self._has_run:
                self._has_run = True
                self._code.exec_module(self)
                return getattr(self, name)
        raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}")


class _PostponingLoader(Loader):
    """Creates the package without running its code."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _PostponedPackage(self._loader)

    def exec_module(self, module: ModuleType) -> None:
        """Leave the code to `_PostponedPackage`."""


class _Finder(MetaPathFinder):
    """Finds the one package, and gives it the postponing loader."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _PostponingLoader(spec.loader)
        return spec


def postpone_client() -> None:
    """Postpone the package's own code from the next import on; once it is imported this has no effect."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
