"""The end of the socket in a model's process, for writing: one frame after the other, from any thread."""

import os
import socket
import threading
from collections.abc import Sequence
from typing import Final

from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.tensors import Data

from .wire.arena import Arena
from .wire.control import FromProcess, control_frame
from .wire.frames import CALL, RESPONSES, FrameWriter, release_frame
from .wire.requests import RequestWriter
from .wire.responses import FINAL, ResponseWriter

_JOIN_BELOW: Final = 1 << 16
# What one system call takes at the most (IOV_MAX is 1024).
_MOST_PIECES: Final = 512


class Outbox:
    """Writes frames. They are made under the lock, because templates must leave in the order of their numbers."""

    def __init__(self, sock: socket.socket, arena: Arena | None = None) -> None:
        self._sock = sock
        self._incoming = arena.incoming if arena is not None else None
        self._outgoing = arena.outgoing if arena is not None else None
        self._lock = threading.Lock()
        self._responses = ResponseWriter()
        self._requests = RequestWriter()

    def control(self, message: FromProcess) -> None:
        """A message beside batches."""
        chunks = control_frame(message)
        with self._lock:
            self._write(chunks)

    def call(self, number: int, request: InferRequest, decoupled: bool) -> None:
        """A request of the model's own. Raises what making its bytes raises."""
        with self._lock:
            frame = FrameWriter(self._outgoing)
            frame.numbers.append(decoupled)
            try:
                self._requests.add(frame, request)
            except BaseException:
                frame.drop()
                self._requests = RequestWriter()  # the old one counts on what was not sent
                raise
            self._write(frame.chunks(CALL, number))

    def responses(self, run: int, state: Sequence[int], responses: Sequence[tuple[int, InferResponse]]) -> None:
        """Responses to requests of a run, and how far that is."""
        with self._lock:
            frame = FrameWriter(self._outgoing)
            frame.numbers += state
            for index, response in responses:
                frame.numbers.append(index | FINAL if response.final else index)
                self._responses.add(frame, response)
            self._write(frame.chunks(RESPONSES, run))

    def releases(self) -> None:
        """What nobody here looks at any more of the server's tensors."""
        with self._lock:
            self._write([])

    def _write(self, chunks: list[Data]) -> None:
        """Where the server is gone there is nobody left to tell."""
        if self._incoming is not None and self._incoming.any_gone:
            chunks = release_frame(self._incoming) + chunks
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
