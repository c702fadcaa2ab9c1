"""Which model is running: how functions without arguments (`Logger.log_info`, `load_model`) find their
server.

The thread that runs a model's code enters its context; coroutines and `asyncio.to_thread` inherit it. A
thread the model started itself does not, and gets the model loaded last: in a process of its own that is
always the right one.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from argosy_runtime.backends.contract import Host, MetricFamilySpec
from argosy_runtime.errors import unavailable
from argosy_runtime.messages import InferRequest, InferResponse

_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "verbose": logging.DEBUG}


@dataclass(slots=True)
class ModelContext:
    """A loaded (or loading) model: its server, its version's folder, and whether `execute` may be called."""

    host: Host
    version_dir: Path
    serving: bool = False


_current: ContextVar[ModelContext] = ContextVar("argosy_python_model")
_latest: list[ModelContext] = []


def current() -> ModelContext:
    """The context of the running model. Before any model is loaded, one without a server."""
    found = _current.get(None)
    if found is not None:
        return found
    return _latest[-1] if _latest else ModelContext(NoHost(), Path())


@contextmanager
def entered(context: ModelContext) -> Iterator[None]:
    """Run a model's code as that model."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def opened(context: ModelContext) -> None:
    """From now on threads of unknown origin belong to this model."""
    _latest.append(context)


def closed(context: ModelContext) -> None:
    """The model is gone."""
    _latest[:] = [other for other in _latest if other is not context]


class NoHost:
    """What a model has while its configuration is being completed: a log, and nothing else."""

    def infer(self, request: InferRequest, decoupled: bool) -> Sequence[InferResponse]:
        """Always UNAVAILABLE."""
        raise unavailable(f"model '{request.model_name}' cannot be called before this model is loaded")

    def load_model(self, name: str, config: str | None, files: dict[str, bytes]) -> None:
        """Always UNAVAILABLE."""
        raise unavailable(f"model '{name}' cannot be loaded before this model is")

    def unload_model(self, name: str, unload_dependents: bool) -> None:
        """Always UNAVAILABLE."""
        raise unavailable(f"model '{name}' cannot be unloaded before this model is loaded")

    def is_model_ready(self, name: str, version: str) -> bool:
        """Always UNAVAILABLE."""
        raise unavailable(f"model '{name}' cannot be asked for before this model is loaded")

    def log(self, level: str, message: str) -> None:
        """To this process's own log."""
        logging.getLogger(__name__).log(_LEVELS.get(level, logging.INFO), "%s", message)

    def metric(self, family: MetricFamilySpec, labels: dict[str, str], action: str, value: float) -> float:
        """Always UNAVAILABLE."""
        raise unavailable(f"metric '{family.name}' cannot be used before this model is loaded")
