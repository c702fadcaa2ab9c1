"""The writing end of the socket in a model's process: one frame after the other, from any thread."""

import os
import socket
import threading
from collections.abc import Sequence
from typing import Final

from argosy_runtime.messages import RESCHEDULED, InferRequest, InferResponse
from argosy_runtime.tensors import Data

from .wire.arena import Arena
from .wire.control import FromProcess, control_frame
from .wire.frames import CALL, RESPONSES, FrameWriter, release_frame
from .wire.requests import RequestWriter
from .wire.responses import AGAIN, FINAL, ResponseWriter

_JOIN_BELOW: Final = 1 << 16
# Pieces that one system call takes at most (IOV_MAX is 1024).
_MOST_PIECES: Final = 512


class Outbox:
    """Writer of frames. Templates must leave in the order of their numbers, so frames are made under the lock."""

    def __init__(self, sock: socket.socket, arena: Arena | None = None) -> None:
        self._sock = sock
        self._incoming = arena.incoming if arena is not None else None
        self._outgoing = arena.outgoing if arena is not None else None
        self._lock = threading.Lock()
        self._responses = ResponseWriter()
        self._requests = RequestWriter()
        self._corks = 0
        self._corked: list[Data] = []

    def cork(self) -> None:
        """Hold back what is written until as many calls of `uncork`, and send it in one write then."""
        with self._lock:
            self._corks += 1

    def uncork(self) -> None:
        """Send what was held back, unless there are other corks."""
        with self._lock:
            self._corks -= 1
            if not self._corks and self._corked:
                corked, self._corked = self._corked, []
                self._send(corked)

    def flush(self) -> None:
        """Send what is held back now, before the process ends."""
        with self._lock:
            self._corks = 0
            corked, self._corked = self._corked, []
            self._send(corked)

    def control(self, message: FromProcess) -> None:
        """Send a message outside batches."""
        chunks = control_frame(message)
        with self._lock:
            self._write(chunks)

    def call(self, number: int, request: InferRequest, decoupled: bool) -> None:
        """Send a request of the model's own. Raises the exceptions of its serialization."""
        with self._lock:
            frame = FrameWriter(self._outgoing)
            frame.numbers.append(decoupled)
            try:
                self._requests.add(frame, request)
            except BaseException:
                frame.drop()
                self._requests = RequestWriter()  # the old one counts on an unsent frame
                raise
            self._write(frame.chunks(CALL, number))

    def responses(self, run: int, state: Sequence[int], responses: Sequence[tuple[int, InferResponse]]) -> None:
        """Send responses to requests of a run, and the run's state."""
        with self._lock:
            frame = FrameWriter(self._outgoing)
            frame.numbers += state
            for index, response in responses:
                if response is RESCHEDULED:
                    frame.numbers.append(index | AGAIN)
                    continue
                frame.numbers.append(index | FINAL if response.final else index)
                self._responses.add(frame, response)
            self._write(frame.chunks(RESPONSES, run))

    def releases(self) -> None:
        """Release the server's tensors that nothing here uses any more."""
        with self._lock:
            self._write([])

    def _write(self, chunks: list[Data]) -> None:
        """Write chunks, after pending releases. End the process where the server is gone."""
        if self._incoming is not None and self._incoming.any_gone:
            chunks = release_frame(self._incoming) + chunks
        if self._corks:
            # All of them, from every thread: the server knows templates by the order of their frames.
            self._corked += chunks
            return
        self._send(chunks)

    def _send(self, chunks: list[Data]) -> None:
        try:
            if sum([len(chunk) for chunk in chunks]) < _JOIN_BELOW:
                self._sock.sendall(b"".join(chunks))
            else:
                self._write_pieces([memoryview(chunk) for chunk in chunks if len(chunk)])
        except OSError:
            os._exit(1)

    def _write_pieces(self, pieces: list[memoryview]) -> None:
        at = 0
        while at < len(pieces):
            sent = self._sock.sendmsg(pieces[at : at + _MOST_PIECES])
            while at < len(pieces) and sent >= len(pieces[at]):
                sent -= len(pieces[at])
                at += 1
            if sent:
                pieces[at] = pieces[at][sent:]
