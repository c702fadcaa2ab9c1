"""Calls of a model's own, at the server's end: why one waits, and that each reason is lifted by itself."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.runtime.execution.fakes import FakeInstance, Submitted, ask

from argosy_runtime.backends.contract import ExecutionTimes, ServerCall
from argosy_runtime.errors import ServingError
from argosy_runtime.execution.calls import host
from argosy_runtime.execution.calls.server import OpenCalls, Value
from argosy_runtime.messages import SHADOW_PRIORITY, Deliver, InferRequest, InferResponse, QueueTrace, Tensor


class FakeServer(Submitted):
    """`ServerCalls`, and the submission that they return."""

    def __init__(self) -> None:
        super().__init__()
        self.at_once = 0
        self.requests: list[InferRequest] = []

    def infer(self, request: InferRequest, decoupled: bool, deliver: Deliver) -> "FakeServer":
        self.requests.append(request)
        for _ in range(self.at_once):
            deliver(InferResponse(outputs=[], final=False))
        return self

    async def do(self, what: ServerCall, owner: int) -> Value:
        raise NotImplementedError

    def forget(self, owner: int) -> None:
        """Do nothing."""


class Model:
    """`Answers` of a model, which reads too slowly where `full` is set."""

    def __init__(self) -> None:
        self.full: OpenCalls | None = None
        self.traces: list[QueueTrace] = []
        self.withdrawn = False
        self.running: tuple[int, ...] = (1,)
        self.cancelled: set[int] = set()

    def is_withdrawn(self) -> bool:
        return self.withdrawn

    def open_runs(self) -> tuple[int, ...]:
        return self.running

    def withdrawn_runs(self) -> set[int]:
        return self.cancelled

    def mirrored(self) -> list[QueueTrace]:
        return self.traces

    def respond(self, call: int, response: InferResponse) -> None:
        if self.full is not None:
            self.full.pause(call)

    def reply(self, call: int, value: Value, error: ServingError | None) -> None:
        """Do nothing."""


class NoListener:
    """`RunListener` of batches whose answers nothing reads."""

    def answered(self, responses: list[InferResponse], times: ExecutionTimes) -> None:
        """Do nothing."""

    def failed(self, error: ServingError) -> None:
        """Do nothing."""

    def free(self) -> None:
        """Do nothing."""

    def respond(self, index: int, response: InferResponse) -> None:
        """Do nothing."""

    def done(self, times: ExecutionTimes | None) -> None:
        """Do nothing."""


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def calls(server: FakeServer) -> OpenCalls:
    return OpenCalls(server, Model())


def test_what_a_model_calls_for_a_copy_is_a_copy_too(server: FakeServer) -> None:
    model = Model()
    calls = OpenCalls(server, model)
    calls.infer(1, ask(), True)
    model.traces = [QueueTrace(), QueueTrace()]
    calls.infer(2, ask(), True)
    assert [request.is_shadow for request in server.requests] == [False, True]
    assert server.requests[1].queue_trace is model.traces[0]
    assert [trace.calls for trace in model.traces] == [True, True]


def test_what_a_model_calls_for_a_copy_that_is_cancelled_is_cancelled_too(server: FakeServer) -> None:
    model = Model()
    calls = OpenCalls(server, model)
    model.traces = [QueueTrace()]
    calls.infer(2, ask(), True)
    calls.withdraw()
    assert server.calls == []
    model.cancelled, model.withdrawn = {1}, True
    calls.withdraw()
    assert server.calls == ["cancel"]
    calls.infer(3, ask(), True)
    assert server.calls == ["cancel", "cancel"], "a model may go on after an error"


def test_a_call_is_cancelled_with_the_last_request_that_it_can_be_for(server: FakeServer) -> None:
    model = Model()
    calls = OpenCalls(server, model)
    model.running = ()
    calls.infer(1, ask(), True)
    model.running = (1, 2)
    calls.infer(2, ask(), True)
    model.cancelled = {1}
    calls.withdraw()
    assert server.calls == [], "batch 2 may need the second, and nothing is known of the first"
    model.cancelled = {1, 2}
    calls.withdraw()
    assert server.calls == ["cancel"]
    calls.infer(3, ask(), True)
    assert server.calls == ["cancel"], "a model may tidy up by calls"


async def test_a_model_is_withdrawn_when_every_copy_in_its_batches_is_cancelled() -> None:
    instance = FakeInstance("m", lambda *_: None)
    listener = NoListener()
    shadowed = [ask(priority=SHADOW_PRIORITY) for _ in range(3)]
    for copy in shadowed:
        copy.queue_trace = QueueTrace()
    both, one = instance.run(shadowed[:2], listener), instance.run(shadowed[2:], listener)
    both.cancel(0)
    one.cancel(0)
    assert not instance.is_withdrawn()
    both.cancel(1)
    assert instance.is_withdrawn()
    assert instance.withdrawn_runs() == {both.id, one.id}
    client = instance.run([ask()], listener)
    client.cancel(0)
    assert not instance.is_withdrawn(), "a client's is no copy"
    assert client.id in instance.withdrawn_runs()
    for _ in range(3):
        instance.finish()
    assert not instance.is_withdrawn()


def test_what_its_model_has_paused_stays_so_when_the_way_is_free_again(calls, server):
    calls.infer(1, ask(), True)
    calls.pause(1)
    calls.pause_all()
    calls.resume_all()
    assert server.calls == ["pause"]
    calls.resume(1)
    assert server.calls == ["pause", "resume"]


def test_a_model_that_has_caught_up_does_not_fill_a_blocked_way(calls, server):
    calls.infer(1, ask(), True)
    calls.pause_all()
    calls.pause(1)
    calls.resume(1)
    assert server.calls == ["pause"]
    calls.resume_all()
    assert server.calls == ["pause", "resume"]


def test_a_call_that_begins_while_the_way_is_blocked_waits(calls, server):
    calls.pause_all()
    calls.infer(1, ask(), True)
    assert server.calls == ["pause"]
    calls.resume_all()
    calls.resume_all()
    assert server.calls == ["pause", "resume"]


def test_responses_that_come_before_the_call_has_begun_pause_it_too(server):
    model = Model()
    model.full = calls = OpenCalls(server, model)
    server.at_once = 2
    calls.infer(1, ask(), True)
    assert server.calls == ["pause"]


class Line:
    """`CallLine` of one thread, which waits for nothing."""

    def __init__(self) -> None:
        self.changes: list[str] = []

    def change(self, call: int, how: str) -> None:
        self.changes.append(how)

    def wait(self, ready: Callable[[], bool]) -> None:
        assert ready()


def test_a_call_waits_with_so_many_bytes_and_goes_on_with_half_of_them():
    line = Line()
    call = host.OpenCall(1, line)
    quarter = Tensor("Y", "UINT8", np.zeros(host.HIGH_BYTES // 4, np.uint8))
    for _ in range(3):
        call.put(InferResponse(outputs=[quarter], final=False), False)
    assert line.changes == []
    call.put(InferResponse(outputs=[quarter], final=False), False)
    assert line.changes == ["pause"]
    next(call)
    assert line.changes == ["pause"]
    next(call)
    assert line.changes == ["pause", "resume"]
