"""The context of the running model, by which functions without arguments (`Logger.log_info`, `load_model`) find their
server.

The thread that runs a model's code enters its context; coroutines and `asyncio.to_thread` inherit it. A thread that
the model started itself does not: its model is found by the modules of the functions that it runs. Where none of them
is a model's, it is the model loaded last, which is always right in a process of its own.
"""

import logging
import sys
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from argosy_runtime.backends.contract import (
    ActOnMetric,
    Call,
    EngineState,
    Host,
    Infer,
    IsModelReady,
    LoadModel,
    ServerCall,
    UnloadModel,
)
from argosy_runtime.errors import ServingError, unavailable

_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "verbose": logging.DEBUG}


@dataclass
class ModelContext:
    """A loaded (or loading) model: its server, its version's folder, and whether `execute` may be called.

    `alone`: it has the process to itself, so that what it reads and what it sends is copied on the way in any case.
    `package`: the name that all of its modules begin with. `instance`: its name in messages.
    """

    host: Host
    version_dir: Path
    serving: bool = False
    alone: bool = False
    package: str = ""
    instance: str = ""

    def refusal(self, error: ServingError) -> str:
        """Return what a model reads where its server refuses a call that is no inference, in Triton's words."""
        return f"Failed to process the request for model '{self.instance}', message: {error.message}"


_current: ContextVar[ModelContext] = ContextVar("argosy_python_model")
_latest: list[ModelContext] = []


def current() -> ModelContext:
    """Return the context of the running model; one without a server before any model is loaded."""
    context = _current.get(None)
    if context is not None:
        return context
    if len(_latest) > 1 and (context := _of_running_code()) is not None:
        return context
    return _latest[-1] if _latest else ModelContext(NoHost(), Path())


def entered_now() -> ModelContext | None:
    """Return the context that this thread or coroutine has entered or inherited, None where it is of unknown origin."""
    return _current.get(None)


def _of_running_code() -> ModelContext | None:
    """Return the context of the innermost function on this thread's stack that belongs to a model."""
    by_package = {context.package: context for context in _latest if context.package}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if (context := by_package.get(package)) is not None:
            return context
        frame = frame.f_back
    return None


class entered:  # noqa: N801  (it reads as a verb: `with entered(context)`)
    """Run a model's code as that model."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: ModelContext) -> None:
        self._context = context
        self._token: Token[ModelContext] | None = None

    def __enter__(self) -> None:
        self._token = _current.set(self._context)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _current.reset(self._token)


def opened(context: ModelContext) -> None:
    """Attribute threads of unknown origin to this model from now on."""
    _latest.append(context)


def closed(context: ModelContext) -> None:
    """Stop attributing threads to this model."""
    _latest[:] = [other for other in _latest if other is not context]


class NoHost:
    """What a model has while its configuration is being completed: a log, and nothing else."""

    def call(self, what: Infer | ServerCall) -> Call:
        """Raise ServingError: UNAVAILABLE."""
        raise unavailable(_too_early(what))

    def log(self, level: str, message: str) -> None:
        """Write a line to this process's own log."""
        logging.getLogger(__name__).log(_LEVELS.get(level, logging.INFO), "%s", message)

    def report(self, state: EngineState) -> None:
        """Drop the state: there is no server yet."""

    def lost(self, error: ServingError) -> None:
        """Raise the error: there is no instance yet to give up."""
        raise error

    def corked(self) -> AbstractContextManager[None]:
        """Return a context that does nothing: there are no responses yet."""
        return nullcontext()


def _too_early(what: Infer | ServerCall) -> str:
    match what:
        case Infer():
            return f"model '{what.request.model_name}' cannot be called before this model is loaded"
        case LoadModel(name):
            return f"model '{name}' cannot be loaded before this model is"
        case UnloadModel(name):
            return f"model '{name}' cannot be unloaded before this model is loaded"
        case IsModelReady(name):
            return f"model '{name}' cannot be asked for before this model is loaded"
        case ActOnMetric(family):
            return f"metric '{family.name}' cannot be used before this model is loaded"
        case _:
            return "the server cannot be asked before this model is loaded"
