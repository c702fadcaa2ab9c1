"""Responses of many requests leave a model's process in one write, and commands reach its model."""

import socket
from collections.abc import Iterator

import pytest

from argosy_runtime.backends.engines.commands import Command, RemoveAdapter, Sleep
from argosy_runtime.errors import ErrorKind, ServingError, internal, not_found
from argosy_runtime.execution.process.inbox import Inbox
from argosy_runtime.execution.process.outbox import Outbox
from argosy_runtime.execution.process.runs import GOES_ON, WorkerRun
from argosy_runtime.execution.process.wire.control import Lost, Manage, Managed, Stop, control_frame, read_from_process
from argosy_runtime.execution.process.wire.frames import CONTROL, RESPONSES, Frame, FrameCutter
from argosy_runtime.execution.process.wire.responses import ResponseReader
from argosy_runtime.execution.process.worker import SocketLine, Worker
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.tensors import raw_tensor


class Writes:
    """A socket that records its writes."""

    def __init__(self) -> None:
        self.made: list[bytes] = []

    def sendall(self, data: bytes) -> None:
        self.made.append(bytes(data))


def frames(data: bytes) -> list[Frame]:
    """Return the frames of what was written."""
    cutter = FrameCutter(writable=False)
    cutter.buffer()[: len(data)] = data
    return cutter.came(len(data))


def token(text: bytes) -> InferResponse:
    """Return a response with a text."""
    return InferResponse(
        outputs=[raw_tensor("text_output", "BYTES", (1,), len(text).to_bytes(4, "little") + text)], final=False
    )


def test_responses_of_a_corked_block_are_one_write():
    sock = Writes()
    outbox = Outbox(sock)
    line = SocketLine(None, outbox)
    line.cork(True)
    for run in range(3):
        outbox.responses(run, [GOES_ON, 0, 0, 0], [(0, token(b"t%d" % run))])
    assert sock.made == []
    line.cork(False)
    (written,) = sock.made
    reader, texts = ResponseReader(), []
    for frame in frames(written):
        assert frame.kind == RESPONSES
        assert [frame.number() for _ in range(5)] == [GOES_ON, 0, 0, 0, 0]
        texts.append((frame.subject, reader.read(frame, False).outputs[0].array.tolist()))
    assert texts == [(0, [b"t0"]), (1, [b"t1"]), (2, [b"t2"])]
    outbox.responses(9, [GOES_ON, 0, 0, 0], [(0, token(b"x"))])
    assert len(sock.made) == 2


def test_the_last_cork_that_is_drawn_sends():
    sock = Writes()
    outbox = Outbox(sock)
    outbox.cork()
    outbox.cork()
    outbox.responses(0, [GOES_ON, 0, 0, 0], [(0, token(b"x"))])
    outbox.uncork()
    assert sock.made == []
    outbox.uncork()
    assert len(sock.made) == 1
    outbox.cork()
    outbox.uncork()
    assert len(sock.made) == 1, "nothing was written"


def test_an_instance_that_is_lost_sends_what_it_has_and_why(monkeypatch):
    ended = []
    monkeypatch.setattr("argosy_runtime.execution.process.worker.os._exit", ended.append)
    sock = Writes()
    outbox = Outbox(sock)
    line = SocketLine(None, outbox)
    line.cork(True)
    outbox.responses(0, [GOES_ON, 0, 0, 0], [(0, token(b"x"))])
    line.lost(internal("its engine died"))
    response, control = frames(b"".join(sock.made))
    assert response.kind == RESPONSES
    message = read_from_process(control)
    assert isinstance(message, Lost)
    assert message.error.message == "its engine died"
    assert ended == [1]


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield both ends of a socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


class Manageable:
    """A model that takes commands."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def execute(self, requests, responder):
        return None

    def close(self):
        """Do nothing."""

    def manage(self, command: Command) -> None:
        self.commands.append(command)
        if isinstance(command, RemoveAdapter):
            raise not_found("no such adapter")


class Unmanaged:
    """A model that takes none."""

    def execute(self, requests, responder):
        return None

    def close(self):
        """Do nothing."""


@pytest.mark.parametrize(
    ("model", "command", "kind"),
    [
        (Manageable(), Sleep(), None),
        (Manageable(), RemoveAdapter("a"), ErrorKind.NOT_FOUND),
        (Unmanaged(), Sleep(), ErrorKind.UNSUPPORTED),
    ],
)
def test_a_command_is_carried_out_and_answered(ends, model, command, kind):
    ours, theirs = ends
    worker = Worker(theirs)
    worker._model = model
    ours.sendall(b"".join([*control_frame(Manage(5, command)), *control_frame(Stop())]))
    assert isinstance(worker._next(), Stop), "a command is carried out on a thread of its own"
    cutter = FrameCutter(writable=False)
    (frame,) = cutter.came(ours.recv_into(cutter.buffer()))
    assert frame.kind == CONTROL
    message = read_from_process(frame)
    assert isinstance(message, Managed)
    assert (message.number, message.error.kind if message.error is not None else None) == (5, kind)
    if isinstance(model, Manageable):
        assert model.commands == [command]


def test_a_sender_that_must_not_wait_does_not(ends):
    ours, theirs = ends
    outbox = Outbox(theirs)
    run = WorkerRun(1, [InferRequest("m", {})], True, Inbox(theirs, lambda frame: None), outbox, lambda number: None)
    run.end(None, None)
    run.pause(0)
    assert run.is_paused(0)
    run.send(0, token(b"x"), wait=False)
    cutter = FrameCutter(writable=False)
    arrived = []
    while len(arrived) < 2:
        arrived += cutter.came(ours.recv_into(cutter.buffer()))
    assert [frame.kind for frame in arrived] == [RESPONSES, RESPONSES]


def test_an_instance_in_the_servers_process_takes_no_commands():
    import asyncio

    from argosy_runtime.execution.instance import Instance

    class Plain(Instance):
        """An instance without a process."""

        async def start(self):
            """Do nothing."""

        async def stop(self, grace):
            """Do nothing."""

        def give_up(self, words):
            """Do nothing."""

        def _execute(self, run, requests):
            """Do nothing."""

        def cancel(self, run, index):
            """Do nothing."""

        def pause(self, run, index):
            """Do nothing."""

        def resume(self, run, index):
            """Do nothing."""

    with pytest.raises(ServingError, match="'m_0' cannot sleep") as refused:
        asyncio.run(Plain("m_0").manage(Sleep()))
    assert refused.value.kind is ErrorKind.UNSUPPORTED
