"""The choices of requests in an engine that gives tokens alone, and what it reports of them."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

import msgspec

from argosy_common import device_errors
from argosy_runtime.backends.contract import Host
from argosy_runtime.backends.engines.meter import EngineMeter, MeteredRequest
from argosy_runtime.backends.engines.state import EngineState
from argosy_runtime.errors import FailureReason, ServingError, unavailable
from argosy_runtime.failures.out_of_memory import with_reason

from .choices import Step

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Work:
    """One choice of a request, how many tokens it has so far, and how many of its prompt's the cache had.

    `on_step` returns whether no more tokens are needed.
    """

    prompt_tokens: int
    on_step: Callable[[Step], bool]
    on_error: Callable[[ServingError], None]
    is_cancelled: Callable[[], bool]
    tokens: int = 0
    cached: int = 0
    metered: MeteredRequest | None = field(default=None, repr=False)


class WorkReports:
    """Tokens and times of an engine's work, reported where they have changed. Safe from any thread."""

    def __init__(self, name: str, host: Host) -> None:
        self._name = name
        self._host = host
        self._meter = EngineMeter()
        self._lock = Lock()
        self._prompt_tokens = self._generated_tokens = self._cached_tokens = 0
        self.reported: EngineState | None = None

    def arrive(self, work: Work) -> None:
        """Begin to measure a work's times."""
        work.metered = MeteredRequest(self._meter, work.prompt_tokens, time.perf_counter())

    def start(self, work: Work) -> None:
        """Count the prompt of work that the engine has accepted."""
        with self._lock:
            self._prompt_tokens += work.prompt_tokens

    def count(self, work: Work, tokens: int, cached: int) -> int:
        """Count the tokens of work that has so many by now. Return how many of them are new."""
        new = max(tokens - work.tokens, 0)
        if not work.tokens and new:
            work.cached = cached
            self._cached_tokens += cached
        work.tokens += new
        self._generated_tokens += new
        return new

    def answer(self, work: Work, now: float) -> None:
        """Record that work has all of its tokens."""
        if work.metered is not None:
            work.metered.answered(now, work.cached)

    def send(self, waiting: int, running: int, cache: float | None, cache_tokens: int | None) -> None:
        """Report the state if it has changed. `cache_tokens`: how many the cache holds."""
        tokens = (self._prompt_tokens, self._generated_tokens, self._cached_tokens)
        state = EngineState(waiting, running, cache, *tokens, cache_tokens=cache_tokens)
        if state != self.reported:
            self.reported = state
            self._host.report(msgspec.structs.replace(state, times=self._meter.take()))

    def failed(self, error: Exception) -> None:
        """Note that the state could not be read, which leaves the requests alone."""
        _log.debug("model instance '%s' cannot report its state: %r", self._name, error)


def ended(name: str, cause: str) -> ServingError:
    """Return the error of requests to an engine that has ended by itself, "" for one that is unloaded."""
    if not cause:
        return unavailable(f"model instance '{name}' is being unloaded")
    error = unavailable(f"model instance '{name}' no longer generates: {cause}", FailureReason.BACKEND)
    return explained(error, cause)


def explained(error: ServingError, words: str) -> ServingError:
    """Return the error of an engine that has no exceptions of a device, with what its words mean."""
    error.device_error = device_errors.line_of(words)
    return with_reason(error)
