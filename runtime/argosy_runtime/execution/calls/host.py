"""Calls of running models to their server: the model's end, on a thread of the server or in its own process."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final, Protocol

from argosy_runtime.backends.contract import Answer, Call, EngineState, Infer, Log, ServerCall
from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, InferResponse

# Responses to one call, and bytes of them, that may queue before their model is paused; it resumes at the half.
HIGH_WATER: Final = 64
HIGH_BYTES: Final = 8 << 20


class CallLine(Protocol):
    """Transport of calls to the server. Every method may be called from any thread."""

    def infer(self, call: int, request: InferRequest, decoupled: bool) -> None:
        """Send an inference."""

    def do(self, call: int, what: ServerCall, answered: bool) -> None:
        """Send any other call."""

    def change(self, call: int, how: str) -> None:
        """Cancel, pause or resume an inference: `how` is cancel, pause or resume."""

    def wait(self, ready: Callable[[], bool]) -> None:
        """Wait until `ready`, which an answer makes true."""

    def expect(self, more: int) -> None:
        """Add to the number of calls whose answers no thread waits for; `more` may be negative."""

    def lost(self, error: ServingError) -> None:
        """Replace the instance."""

    def cork(self, corked: bool) -> None:
        """Hold responses back, or send all that were held back."""


class HostCalls:
    """A `Host` over a line to the server."""

    def __init__(self, line: CallLine) -> None:
        self._line = line
        self._ids = count()
        self._open: dict[int, OpenCall] = {}

    def call(self, what: Infer | ServerCall) -> Call:
        number = next(self._ids)
        call = self._open[number] = OpenCall(number, self._line)
        try:
            if isinstance(what, Infer):
                self._line.infer(number, what.request, what.decoupled)
            else:
                self._line.do(number, what, True)
        except BaseException:
            del self._open[number]
            raise
        return call

    def log(self, level: str, message: str) -> None:
        self._line.do(-1, Log(level, message), False)

    def report(self, state: EngineState) -> None:
        self._line.do(-1, state, False)

    def lost(self, error: ServingError) -> None:
        self._line.lost(error)

    @contextmanager
    def corked(self) -> Iterator[None]:
        self._line.cork(True)
        try:
            yield
        finally:
            self._line.cork(False)

    def respond(self, number: int, response: InferResponse) -> None:
        """Take a response to an inference."""
        call = self._open.pop(number, None) if response.final else self._open.get(number)
        if call is not None:
            call.put(response, response.final)

    def reply(self, number: int, value: bool | float | None, error: ServingError | None) -> None:
        """Take the answer to any other call, or a refusal."""
        call = self._open.pop(number, None)
        if call is not None:
            call.put(value if error is None else error, True)


class OpenCall:
    """One call, and what of its answers has not been taken."""

    def __init__(self, number: int, line: CallLine) -> None:
        self._number = number
        self._line = line
        self._lock = threading.Lock()
        self._answers: deque[Answer | ServingError] = deque()
        self._bytes = 0
        self._over = False
        self._paused = False
        self._notify: Callable[[], None] | None = None

    def __iter__(self) -> "OpenCall":
        return self

    def __next__(self) -> Answer:
        self._line.wait(self._ready)
        with self._lock:
            if not self._answers:
                raise StopIteration
            answer = self._answers.popleft()
            self._bytes -= _size(answer)
            resumed = self._paused and len(self._answers) <= HIGH_WATER // 2 and self._bytes <= HIGH_BYTES // 2
            if resumed:
                self._paused = False
        if resumed:
            self._line.change(self._number, "resume")
        if isinstance(answer, ServingError):
            raise answer
        return answer

    def cancel(self) -> None:
        with self._lock:
            if self._over:
                return
        self._line.change(self._number, "cancel")

    def when_ready(self, notify: Callable[[], None]) -> None:
        with self._lock:
            ready = self._ready()
            if not ready:
                self._notify = notify
        if ready:
            notify()
        else:
            self._line.expect(1)

    def put(self, answer: Answer | ServingError, last: bool) -> None:
        """Take an answer; `last` where nothing follows it."""
        with self._lock:
            self._answers.append(answer)
            self._bytes += _size(answer)
            self._over = self._over or last
            notify, self._notify = self._notify, None
            many = len(self._answers) >= HIGH_WATER or self._bytes >= HIGH_BYTES
            full = many and not (self._paused or self._over)
            if full:
                self._paused = True
        if full:
            self._line.change(self._number, "pause")
        if notify is not None:
            self._line.expect(-1)
            notify()

    def _ready(self) -> bool:
        return self._over or bool(self._answers)


def _size(answer: Answer | ServingError) -> int:
    return answer.nbytes if isinstance(answer, InferResponse) else 0
