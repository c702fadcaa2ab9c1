"""NVIDIA's schemas without NVIDIA's client.

All packages use two protobuf modules of `tritonclient.grpc`. To import one of them runs that package: the client, and
gRPC's library under it, 20 MB and a tenth of a second in every process. The finder here gives the package a loader that
runs its code only once something other than a schema is read from it.

A model's own environment may have an older protobuf than the one that the schemas were generated for, which refuses
them though it can read them. There they are loaded without that check.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType, SimpleNamespace
from typing import Any, Final

_PACKAGE: Final = "tritonclient.grpc"
_CHECK_NAME: Final = "runtime_version"
_CHECK: Final = f"google.protobuf.{_CHECK_NAME}"
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


class _UncheckedLoader(Loader):
    """Runs a schema's code, and once more without the check of protobuf's release where that refuses it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the code."""
        try:
            self._loader.exec_module(module)
        except Exception as error:
            # protobuf has the check from 5.26 on; its error has no class that older ones have.
            if not (isinstance(error, ImportError) or type(error).__name__ == "VersionError"):
                raise
            with _no_check():
                self._loader.exec_module(module)


@contextmanager
def _no_check() -> Iterator[None]:
    """Put a module that accepts every release in place of protobuf's check."""
    import google.protobuf as protobuf

    accepting = ModuleType(_CHECK)
    vars(accepting).update(ValidateProtobufRuntimeVersion=lambda *release: None, Domain=SimpleNamespace(PUBLIC=1))
    own = sys.modules.get(_CHECK), vars(protobuf).get(_CHECK_NAME)
    sys.modules[_CHECK] = vars(protobuf)[_CHECK_NAME] = accepting
    try:
        yield
    finally:
        del sys.modules[_CHECK], vars(protobuf)[_CHECK_NAME]
        if own[0] is not None:
            sys.modules[_CHECK] = own[0]
        if own[1] is not None:
            vars(protobuf)[_CHECK_NAME] = own[1]


class _Finder(MetaPathFinder):
    """Finds the package, which gets the postponing loader, and its schemas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        loader = _LOADERS.get(fullname)
        spec = PathFinder.find_spec(fullname, path, target) if loader is not None else None
        if loader is not None and spec is not None and spec.loader is not None:
            spec.loader = loader(spec.loader)
        return spec


_LOADERS: Final[Mapping[str, Callable[[Loader], Loader]]] = {
    _PACKAGE: _PostponingLoader,
    **{f"{_PACKAGE}.{schema}": _UncheckedLoader for schema in _SCHEMAS},
}


def postpone_client() -> None:
    """Postpone the package's own code from the next import on; once it is imported this has no effect."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
