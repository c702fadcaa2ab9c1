"""A model's batching strategy: a Python file of its folder that decides which requests share a batch.

The parameter `BATCH_STRATEGY` names the file, which defines

    class BatchStrategy:
        def __init__(self, config):            # the model's configuration, as the server prints it
        def include(self, batch, request):     # True where the batch, a tuple of requests, takes another one

It runs in the server's own process, on its event loop, for each waiting request each time a batch is formed.
"""

import importlib.util
import logging
from pathlib import Path
from typing import Any, Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid, not_found, unsupported
from argosy_runtime.modelconfig import to_json
from argosy_runtime.repository.folders.layout import ModelFolder, inside
from argosy_runtime.scheduling.batching.strategy import BatchStrategy

PARAMETER: Final = "BATCH_STRATEGY"
LIBRARY_PARAMETER: Final = "TRITON_BATCH_STRATEGY_PATH"
_LIBRARY: Final = "batchstrategy.so"
_CLASS: Final = "BatchStrategy"

_log = logging.getLogger("argosy.repository")


def load_strategy(config: ModelConfig, folder: ModelFolder, version: int) -> BatchStrategy | None:
    """Return the strategy that a version names, None where it names none. Reads files, so not on the event loop.

    Raises ServingError.
    """
    _refuse_library(config, folder, version)
    if PARAMETER not in config.parameters:
        return None
    about = f"model '{config.name}', parameter '{PARAMETER}': "
    name = config.parameters[PARAMETER].string_value
    path = inside(folder.data_folder(version, name), name)
    if path.suffix != ".py":
        raise unsupported(
            f"{about}'{name}' is no Python file; a strategy is a class {_CLASS} in a file that ends with .py"
        )
    if not path.is_file():
        raise not_found(f"{about}there is no file '{path}'")
    try:
        strategy = _strategy_class(path)(to_json(config))
        include = strategy.include
    except Exception as error:
        raise invalid(f"{about}'{path}' cannot be used: {type(error).__name__}: {error}") from error
    return BatchStrategy(include, _Report(config.name))


def _refuse_library(config: ModelConfig, folder: ModelFolder, version: int) -> None:
    holder = next((path for path in (folder.version_path(version), folder.path) if (path / _LIBRARY).is_file()), None)
    if LIBRARY_PARAMETER in config.parameters:
        if config.HasField("sequence_batching"):
            raise invalid(
                f"{LIBRARY_PARAMETER} cannot be specified with sequence batcher, using default batching strategy"
            )
        named = f"parameter '{LIBRARY_PARAMETER}'"
    elif holder is not None and not config.HasField("sequence_batching"):
        named = f"'{holder / _LIBRARY}'"
    else:
        return
    raise unsupported(
        f"model '{config.name}': {named} is a batching library for Triton's C API, which this server does not have; "
        f"write the rule as a class {_CLASS} in a Python file, and name that by the parameter '{PARAMETER}'"
    )


def _strategy_class(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"argosy_batch_strategy_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, _CLASS)


class _Report:
    """Logs the errors of one model's strategy."""

    def __init__(self, model: str) -> None:
        self._model = model

    def __call__(self, error: Exception, count: int) -> None:
        _log.error(
            "the batching strategy of model '%s' failed (%d times so far), a batch went without its next request: %r",
            self._model,
            count,
            error,
        )
