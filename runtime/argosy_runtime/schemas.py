"""NVIDIA's schemas without NVIDIA's client.

`tritonclient.grpc` holds the two protobuf modules that everything here is written in, and to import one of them runs
the package: the client, and gRPC's library under it, some twenty megabytes and a tenth of a second in every process.
Here the package stands for itself until something other than a schema is asked of it; then it runs, as ever.
"""

import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any, Final

_PACKAGE: Final = "tritonclient.grpc"
_SCHEMAS: Final = frozenset(("model_config_pb2", "service_pb2"))


class _PostponedPackage(ModuleType):
    """The package before its own code has run."""

    def __init__(self) -> None:
        super().__init__(_PACKAGE)
        spec = importlib.util.find_spec(_PACKAGE)
        assert spec is not None
        assert spec.loader is not None
        self.__spec__ = spec
        self.__loader__ = spec.loader
        self.__file__ = spec.origin
        self.__package__ = _PACKAGE
        self.__path__ = spec.submodule_search_locations or []
        self._running = threading.RLock()
        self._has_run = False

    def __getattr__(self, name: str) -> Any:
        # Asked for what is not there yet. A schema is a module of the package's, which whoever asks then imports.
        if name in _SCHEMAS or (name.startswith("__") and name != "__all__"):
            raise AttributeError(name)
        with self._running:
            if not self._has_run:
                self._has_run = True
                assert self.__spec__ is not None
                assert self.__spec__.loader is not None
                self.__spec__.loader.exec_module(self)
                return getattr(self, name)
        raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}")


def postpone_client() -> None:
    """Have the package's own code wait, unless it has run."""
    if _PACKAGE not in sys.modules and importlib.util.find_spec("tritonclient") is not None:
        sys.modules[_PACKAGE] = _PostponedPackage()
