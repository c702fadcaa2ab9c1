"""A model's process as the server has it: started, spoken with over a socket, ended."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Final, Protocol, cast

from argosy_runtime.tensors import Data

from .frames import Frame, FrameCutter, FrameError

_JOIN_BELOW: Final = 1 << 16


class Peer(Protocol):
    """Who the process speaks with. Called on the event loop."""

    def received(self, frame: Frame) -> None:
        """A frame came. Raises FrameError where it says what cannot be."""

    def broken(self, error: FrameError) -> None:
        """What came made no sense. Nothing more is read."""

    def lost(self) -> None:
        """The socket is closed."""

    def blocked(self, full: bool) -> None:
        """The process reads slower than it is written to; it does no longer, where not `full`."""


class WorkerConnection(asyncio.BufferedProtocol):
    """A worker process and the socket to it."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._cutter = FrameCutter(writable=False)
        self._transport: asyncio.WriteTransport | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._broken = False

    async def start(self) -> None:
        """Start the process; it waits for messages. Raises OSError."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = await _spawn(theirs)
        except BaseException:
            ours.close()
            raise
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.BufferedProtocol."""
        self._transport = cast(asyncio.WriteTransport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See asyncio.BufferedProtocol."""
        return self._cutter.room()

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio.BufferedProtocol."""
        if self._broken:
            return
        try:
            for frame in self._cutter.came(nbytes):
                self._peer.received(frame)
        except FrameError as error:
            self._broken = True
            self._cutter = FrameCutter(writable=False)
            self._peer.broken(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.BufferedProtocol."""
        self._peer.lost()

    def pause_writing(self) -> None:
        """See asyncio.BufferedProtocol."""
        self._peer.blocked(True)

    def resume_writing(self) -> None:
        """See asyncio.BufferedProtocol."""
        self._peer.blocked(False)

    def send(self, chunks: list[Data]) -> None:
        """One frame; dropped where the process is gone, whose loss the peer is told of."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if sum([len(chunk) for chunk in chunks]) < _JOIN_BELOW:
            transport.write(b"".join(chunks))
        else:
            transport.writelines(chunks)

    async def end(self, grace: float) -> str:
        """Wait for the process to go, kill it after `grace` seconds; how it ended, in words."""
        if self._process is None:
            return "never started"
        try:
            code = await asyncio.wait_for(self._process.wait(), grace)
        except TimeoutError:
            self.kill()
            code = await self._process.wait()
        if self._transport is not None:
            self._transport.close()
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"exited with code {code}"

    def kill(self) -> None:
        """End it now."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()


async def _spawn(theirs: socket.socket) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "argosy_runtime.execution.process.worker",
        str(theirs.fileno()),
        pass_fds=[theirs.fileno()],
        env=_environment(),
        stdin=asyncio.subprocess.DEVNULL,
    )


def _environment() -> dict[str, str]:
    """The worker finds this package wherever the server did."""
    package_root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
