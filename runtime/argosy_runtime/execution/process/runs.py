"""The batches of a model's process: answers, cancelled requests, paused requests."""

import threading
from collections.abc import Callable
from typing import Final

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ServingError
from argosy_runtime.messages import RESCHEDULED, InferRequest, InferResponse

from .inbox import Inbox
from .outbox import Outbox
from .wire.responses import EVERY

# State of a run: unchanged; taken by the model, which may answer later; completely answered.
GOES_ON: Final = 0
RETURNED: Final = 1
ANSWERED: Final = 2

_GOES_ON: Final = [GOES_ON, 0, 0, 0]
_RETURNED: Final = [RETURNED, 0, 0, 0]


class WorkerRun:
    """One batch, and the `Responder` to it.

    Responses before the batch ends leave with its end, in one write; those of a decoupled model, and later ones, at
    once.
    """

    __slots__ = (
        "_cancelled",
        "_decoupled",
        "_deferred",
        "_finals",
        "_forget",
        "_inbox",
        "_lock",
        "_outbox",
        "_paused",
        "_returned",
        "number",
        "requests",
    )

    def __init__(
        self,
        number: int,
        requests: list[InferRequest],
        decoupled: bool,
        inbox: Inbox,
        outbox: Outbox,
        forget: Callable[[int], None],
    ) -> None:
        self.number = number
        self.requests = requests
        self._decoupled = decoupled
        self._inbox = inbox
        self._outbox = outbox
        self._forget = forget
        self._lock = threading.Lock()
        self._deferred: list[tuple[int, InferResponse]] = []
        self._finals: set[int] = set()
        self._returned = False
        self._cancelled: set[int] | None = None
        self._paused: set[int] | None = None

    def send(self, index: int, response: InferResponse, wait: bool = True) -> None:
        if self._decoupled:
            self._inbox.poll()
        if wait and self._paused and not response.final:
            self._wait_for(index)
        with self._lock:
            if index in self._finals:
                return
            if response.final:
                self._finals.add(index)
            if not (self._returned or self._decoupled):
                self._deferred.append((index, response))
                return
            over = self._returned and len(self._finals) == len(self.requests)
            self._outbox.responses(self.number, _GOES_ON, [(index, response)])
        if over:
            self._forget(self.number)

    def reschedule(self, index: int) -> None:
        self.send(index, RESCHEDULED)

    def is_cancelled(self, index: int) -> bool:
        self._inbox.poll()
        return self._cancelled is not None and index in self._cancelled

    def is_paused(self, index: int) -> bool:
        self._inbox.poll()
        return self._holds_back(index)

    def end(self, times: ExecutionTimes | None, error: ServingError | None) -> None:
        """Send the end of the model's `execute` to the server, with all deferred responses."""
        state = _RETURNED
        with self._lock:
            deferred, self._deferred = self._deferred, []
            self._returned = True
            if error is not None:
                deferred.append((EVERY, InferResponse("", "", error=error)))
                self._finals.update(range(len(self.requests)))
            elif times is not None:
                state = [ANSWERED, times.compute_input_ns, times.compute_infer_ns, times.compute_output_ns]
            over = times is not None or len(self._finals) == len(self.requests)
            self._outbox.responses(self.number, state, deferred)
        if over:
            self._forget(self.number)

    def cancel(self, index: int) -> None:
        """Cancel request `index`, whose client has gone."""
        if self._cancelled is None:
            self._cancelled = set()
        self._cancelled.add(index)

    def pause(self, index: int) -> None:
        """Pause request `index`, whose client reads slowly."""
        if self._paused is None:
            self._paused = set()
        self._paused.add(index)

    def resume(self, index: int) -> None:
        """Resume request `index`."""
        if self._paused is not None:
            self._paused.discard(index)

    def _holds_back(self, index: int) -> bool:
        gone = self._cancelled is not None and index in self._cancelled
        return self._paused is not None and index in self._paused and not gone

    def _wait_for(self, index: int) -> None:
        self._inbox.wait(lambda: not self._holds_back(index))
