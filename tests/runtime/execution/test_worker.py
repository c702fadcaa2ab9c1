"""How long a model's process keeps the parts of a batch; its server is the other end of a socket here."""

import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from argosy_runtime.execution.process.inbox import Inbox
from argosy_runtime.execution.process.runs import WorkerRun
from argosy_runtime.execution.process.wire.frames import CANCEL, EXECUTE, PAUSE, RESUME, Frame, FrameCutter, FrameWriter
from argosy_runtime.execution.process.wire.requests import RequestWriter
from argosy_runtime.execution.process.wire.responses import FINAL
from argosy_runtime.execution.process.worker import Worker
from argosy_runtime.messages import InferRequest, InferResponse, Tensor


class Server:
    """The other end."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._requests = RequestWriter()
        self._cutter = FrameCutter(writable=False)

    def execute(self, run: int, count: int) -> None:
        """Send a batch."""
        frame = FrameWriter()
        for _ in range(count):
            self._requests.add(frame, InferRequest("m", {"X": Tensor("X", "FP32", np.ones(1, np.float32))}))
        self._send(frame, EXECUTE, run)

    def control(self, kind: int, run: int, index: int) -> None:
        """Send CANCEL, PAUSE or RESUME."""
        frame = FrameWriter()
        frame.numbers.append(index)
        self._send(frame, kind, run)

    def _send(self, frame: FrameWriter, kind: int, run: int) -> None:
        self._sock.sendall(b"".join(frame.chunks(kind, run)))

    def received(self) -> Frame:
        """Return the one frame that comes next."""
        (frame,) = self._cutter.came(self._sock.recv_into(self._cutter.buffer()))
        return frame


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield both ends of a socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def worker(ends) -> Worker:
    """Return the worker of a model's process, without a model."""
    return Worker(ends[1])


@pytest.fixture
def server(ends) -> Server:
    """Return its server."""
    return Server(ends[0])


def final() -> InferResponse:
    """Return a last response."""
    return InferResponse(outputs=[])


def taken(worker: Worker) -> WorkerRun:
    """Return the batch that has come."""
    run = worker._next()
    assert isinstance(run, WorkerRun)
    return run


def test_nothing_is_retained_of_a_batch_that_is_over(worker, server):
    worker._decoupled = True
    server.execute(7, 2)
    run = taken(worker)
    server.control(CANCEL, 7, 1)
    server.control(PAUSE, 7, 1)
    assert run.is_cancelled(1)
    assert not run.is_cancelled(0)
    run.end(None, None)
    run.send(0, final())
    assert worker._runs, "one request has no last response"
    run.send(1, final())
    assert not worker._runs
    run.send(1, final())
    for kind in (CANCEL, PAUSE, RESUME):
        server.control(kind, 7, 0)
    server.execute(8, 1)
    assert taken(worker).number == 8, "what comes too late harms nobody"


def test_a_batch_is_answered_in_one_frame(worker, server):
    server.execute(3, 2)
    run = taken(worker)
    run.send(1, final())
    run.send(0, final())
    run.end(None, None)
    frame = server.received()
    assert frame.subject == 3
    assert [frame.number() for _ in range(4)] == [1, 0, 0, 0]
    assert frame.number() == 1 | FINAL
    assert not worker._runs


def test_a_response_to_a_slow_client_waits_until_it_has_caught_up(worker, server):
    worker._decoupled = True
    server.execute(1, 2)
    run = taken(worker)
    server.control(PAUSE, 1, 0)
    assert run.is_paused(0)
    assert not run.is_paused(1)
    sending = threading.Thread(target=run.send, args=(0, InferResponse(outputs=[], final=False)))
    sending.start()
    run.send(1, final())
    assert [server.received().number() for _ in range(1)] == [0]
    server.control(RESUME, 1, 0)
    sending.join()
    assert server.received().subject == 1


def test_who_reads_reads_for_all(ends):
    came: list[int] = []
    inbox = Inbox(ends[1], lambda frame: came.append(frame.subject))
    waiting = [
        threading.Thread(target=inbox.wait, args=(lambda number=number: number in came,)) for number in (3, 1, 2)
    ]
    for thread in waiting:
        thread.start()
    for number in (1, 2, 3):
        Server(ends[0]).control(CANCEL, number, 0)
    for thread in waiting:
        thread.join()
    assert came == [1, 2, 3]


def test_what_no_thread_waits_for_is_read_all_the_same(ends):
    came = threading.Event()

    def sort(frame: Frame) -> None:
        inbox.expect(-1)
        came.set()

    inbox = Inbox(ends[1], sort)
    for number in range(3):
        came.clear()
        inbox.expect(1)
        Server(ends[0]).control(CANCEL, number, 0)
        assert came.wait(30)
