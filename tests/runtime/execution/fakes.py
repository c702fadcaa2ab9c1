"""A clock, instances and clients that a test has in its hand."""

import asyncio
import heapq
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
import pytest

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ServingError, internal, unavailable
from argosy_runtime.execution.instance import Instance, Run
from argosy_runtime.execution.instance_group import OnDeath
from argosy_runtime.messages import InferRequest, InferResponse, Submission, Tensor

US = 1_000
SECOND = 1_000_000_000
TIMES = ExecutionTimes(1, 2, 3)


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


class Submitted:
    """A `Submission` that records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def cancel(self) -> None:
        self.calls.append("cancel")

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")


class VirtualTimer:
    """A `Timer` of the virtual clock."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """Time passes when `pass_time` says so."""

    def __init__(self) -> None:
        self._now = 0
        self._ids = count()
        self._timers: list[tuple[int, int, VirtualTimer]] = []

    def now(self) -> int:
        return self._now

    def call_at(self, when: int, callback: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(callback)
        heapq.heappush(self._timers, (when, next(self._ids), timer))
        return timer

    async def pass_time(self, ns: int) -> None:
        """Advance the time; timers that are due on the way run in their order."""
        end = self._now + ns
        await settle()
        while self._timers and self._timers[0][0] <= end:
            when, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, when)
            if timer.callback is not None:
                timer.callback()
                await settle()
        self._now = end


class FakeInstance(Instance):
    """Loads when `load` says so, and answers when `finish` does."""

    def __init__(self, name: str, on_death: OnDeath, decoupled: bool = False, rank: int = 0) -> None:
        super().__init__(name, rank)
        self._decoupled = decoupled
        self._on_death = on_death
        self._loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.batches: list[tuple[Run, Sequence[InferRequest]]] = []
        self.calls: list[tuple[str, int]] = []
        self.dead = False
        self.stopped = False
        self.refuses = False
        """The next batch cannot be handed over."""
        self.broken = False
        """Whether it has met an error of its device."""
        self.dies_at_once = True
        """Whether it has ended as soon as it is given up."""

    async def start(self) -> None:
        await self._loaded

    @property
    def loading(self) -> bool:
        """True while it waits for `load`."""
        return not self._loaded.done()

    @property
    def holds(self) -> bool:
        """True once it has loaded, until it is lost or released."""
        loaded = self._loaded.done() and not self._loaded.cancelled() and self._loaded.exception() is None
        return loaded and not (self.dead or self.stopped)

    def load(self, error: ServingError | None = None) -> None:
        """End the load, with an error if there is one."""
        if error is None:
            self._loaded.set_result(None)
        else:
            self._loaded.set_exception(error)

    def _execute(self, run: Run, requests: Sequence[InferRequest]) -> None:
        if self.refuses:
            self.refuses = False
            raise TypeError("no such thing")
        if self.dead or self.broken:
            # No assertion: the dispatcher takes any Exception for a request that cannot be sent.
            pytest.fail("a batch goes to an instance that has ended or met a device error")
        self.batches.append((run, requests))

    def ids(self) -> list[list[str]]:
        """Return the ids of its pending requests, by batch."""
        return [[request.id for request in requests] for _, requests in self.batches]

    def finish(self, *errors: ServingError | None) -> None:
        """Answer the oldest batch at once, each with its request's X as Y."""
        run, requests = self.batches.pop(0)
        wrong = [*errors, *[None] * len(requests)]
        responses = [answer(request, error) for request, error in zip(requests, wrong, strict=False)]
        self._meet(*errors)
        self._answered(run.id, responses, TIMES)

    def fail(self, error: ServingError) -> None:
        """Fail the oldest batch."""
        run, _ = self.batches.pop(0)
        self._meet(error)
        self._done(run.id, None, error)

    def _meet(self, *errors: ServingError | None) -> None:
        self.broken |= not self.on_cpu and any(error is not None and error.device_error != "" for error in errors)

    def respond(self, index: int = 0, final: bool = True, response: InferResponse | None = None) -> None:
        """Send a response to one request of the oldest batch: this one, or its request's X."""
        run, requests = self.batches[0]
        response = response or answer(requests[index])
        response.final = final
        self._respond(run.id, index, response)

    def end(self, index: int = 0) -> None:
        """Send no more responses to one request of the oldest batch, which has had its responses."""
        run, _ = self.batches[0]
        self._respond(run.id, index, InferResponse())

    def free(self) -> None:
        """Finish running the oldest batch; answers of a decoupled model come later."""
        run, _ = self.batches[0]
        self._done(run.id, None if self._decoupled else TIMES, None)

    def die(self, words: str = "") -> None:
        """Lose the instance."""
        self.dead = True
        self.batches.clear()
        error = internal(f"{self.name} died {words}".strip(), device_error=words)
        self._on_death(self, error)
        self._fail_all(error)

    def give_up(self, words: str) -> None:
        if not self.dead and self.dies_at_once:
            self.die(words)

    def cancel(self, run: Run, index: int) -> None:
        self.calls.append(("cancel", index))

    def pause(self, run: Run, index: int) -> None:
        self.calls.append(("pause", index))

    def resume(self, run: Run, index: int) -> None:
        self.calls.append(("resume", index))

    async def stop(self, grace: float) -> None:
        self.stopped = True
        self.batches.clear()
        self._fail_all(unavailable(f"{self.name} was unloaded"))


class Factory:
    """Makes instances, and keeps them all."""

    def __init__(self, decoupled: bool = False, rank: int = 0) -> None:
        self.made: list[FakeInstance] = []
        self._decoupled = decoupled
        self._rank = rank

    def __call__(self, on_death: OnDeath) -> FakeInstance:
        instance = FakeInstance(f"m_{len(self.made)}", on_death, self._decoupled, self._rank)
        self.made.append(instance)
        return instance


def ask(name: str = "", rows: int = 1, **fields: object) -> InferRequest:
    """Return a request."""
    return InferRequest("m", {"X": Tensor("X", "FP32", np.ones((rows, 1), np.float32))}, id=name, **fields)


def answer(request: InferRequest, error: ServingError | None = None) -> InferResponse:
    """Return its response."""
    outputs = None if error else [request.inputs["X"].renamed("Y"), request.inputs["X"].renamed("Z")]
    return InferResponse(outputs=outputs, error=error)


class Client:
    """The responses to one request."""

    def __init__(self) -> None:
        self.responses: list[InferResponse] = []
        self.submission: Submission | None = None

    def deliver(self, response: InferResponse) -> None:
        assert not self.over, "nothing follows the final response"
        self.responses.append(response)

    @property
    def over(self) -> bool:
        """True once the last one is here."""
        return bool(self.responses) and self.responses[-1].final

    @property
    def error(self) -> str:
        """The message of its error, or nothing."""
        error = self.responses[-1].error if self.responses else None
        return "" if error is None else error.message
