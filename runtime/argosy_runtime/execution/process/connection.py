"""A model's process as the server has it: started, spoken with over a socket, ended."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol, cast

from argosy_runtime.failures.out_of_memory import OOM_KILLS
from argosy_runtime.tensors import Data

from .groups import GROUPS, kill
from .wire.arena import Arena, make_memory
from .wire.frames import RELEASE, Frame, FrameCutter, FrameError, FrameWriter, read_release, release_frame

_JOIN_BELOW: Final = 1 << 16
# So long what the process has written is waited for when it is gone: what it started may have the socket too.
_LAST_WORDS_SECONDS: Final = 1.0
# So long the process may have to wait until it is told of shared memory that it can use again, if nothing else is said.
_TELL_SECONDS: Final = 0.05


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


class _Nobody:
    """Stands for the peer of a connection that is lost."""

    def received(self, frame: Frame) -> None:
        """See `Peer`, as for all below."""

    def broken(self, error: FrameError) -> None:
        """Nothing more is read."""

    def lost(self) -> None:
        """It has been told."""

    def blocked(self, full: bool) -> None:
        """Nothing more is written."""


_NOBODY: Final = _Nobody()


class WorkerConnection(asyncio.BufferedProtocol):
    """A worker process and the socket to it. `out_of_memory`: the kernel ended it, for want of memory.

    The end of the process is the end of all that it started, and then of the socket, whatever else has that open.
    """

    def __init__(self, peer: Peer) -> None:
        self._peer: Peer = peer
        self._cutter = FrameCutter(writable=False)
        self._transport: asyncio.WriteTransport | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._ended_by_us = False
        self.out_of_memory = False
        self._broken = False
        self._arena: Arena | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[int] | None = None
        self._hanging_up: asyncio.TimerHandle | None = None
        self._is_lost = False

    async def start(self, before: Mapping[str, str] | None = None) -> None:
        """Start the process; it waits for messages. Raises OSError.

        `before`: what it is to find before all else, by the variables that list folders.
        """
        ours, theirs = socket.socketpair()
        memory = _memory()
        try:
            with theirs:
                if memory >= 0:
                    self._arena = Arena(memory, server=True)
                    self._cutter = FrameCutter(writable=False, incoming=self._arena.incoming)
                self._process = await _spawn(theirs, memory, _environment(before or {}))
                self._watch = asyncio.get_running_loop().create_task(self._watched(self._process))
        except BaseException:
            ours.close()
            raise
        finally:
            if memory >= 0:
                os.close(memory)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.BufferedProtocol."""
        self._transport = cast(asyncio.WriteTransport, transport)

    async def _watched(self, process: asyncio.subprocess.Process) -> int:
        """Wait until the process is gone with all of its group. Return its exit code."""
        try:
            code = await process.wait()
        except BaseException:
            GROUPS.kill(process.pid)
            raise
        await GROUPS.end(process.pid)
        if not self._is_lost:
            self._hanging_up = asyncio.get_running_loop().call_later(_LAST_WORDS_SECONDS, self._hang_up)
        return code

    def _hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """See asyncio.BufferedProtocol."""
        return self._cutter.room()

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio.BufferedProtocol."""
        if self._broken:
            return
        try:
            for frame in self._cutter.came(nbytes):
                if frame.kind == RELEASE:
                    read_release(frame, self._arena)
                else:
                    self._peer.received(frame)
        except FrameError as error:
            self._broken = True
            self._cutter = FrameCutter(writable=False)
            self._peer.broken(error)
        if self._timer is None and self._arena is not None and self._arena.incoming.any_lent:
            self._timer = asyncio.get_running_loop().call_later(_TELL_SECONDS, self._tell_gone)

    def _tell_gone(self) -> None:
        """The process may wait for shared memory, and nothing else may go to it."""
        self._timer = None
        if self._arena is None:
            return
        incoming = self._arena.incoming
        if incoming.any_gone:
            self.send([])
        if incoming.any_lent:
            self._timer = asyncio.get_running_loop().call_later(_TELL_SECONDS, self._tell_gone)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.BufferedProtocol."""
        self._is_lost = True
        for timer in (self._timer, self._hanging_up):
            if timer is not None:
                timer.cancel()
        # Explicitly, and without the circle of peers: memory and its descriptor must not wait for the collector.
        if self._arena is not None:
            self._arena.close()
            self._arena = None
        peer, self._peer = self._peer, _NOBODY
        peer.lost()

    def pause_writing(self) -> None:
        """See asyncio.BufferedProtocol."""
        self._peer.blocked(True)

    def resume_writing(self) -> None:
        """See asyncio.BufferedProtocol."""
        self._peer.blocked(False)

    def frame(self) -> FrameWriter:
        """Return one to be filled and sent."""
        return FrameWriter(self._arena.outgoing if self._arena is not None else None)

    def send(self, chunks: list[Data]) -> None:
        """One frame; dropped where the process is gone, whose loss the peer is told of."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._arena is not None and self._arena.incoming.any_gone:
            chunks = release_frame(self._arena.incoming) + chunks
        if sum([len(chunk) for chunk in chunks]) < _JOIN_BELOW:
            transport.write(b"".join(chunks))
        else:
            transport.writelines(chunks)

    async def end(self, grace: float) -> str:
        """Wait for the process to go, kill it after `grace` seconds; how it ended, in words."""
        if self._watch is None:
            return "never started"
        try:
            code = await asyncio.wait_for(asyncio.shield(self._watch), grace)
        except TimeoutError:
            self.kill()
            code = await asyncio.shield(self._watch)
        if self._transport is not None:
            self._transport.close()
        if code < 0:
            self.out_of_memory = code == -signal.SIGKILL and not self._ended_by_us and OOM_KILLS.one_more()
            why = " for want of memory" if self.out_of_memory else ""
            return f"was killed by signal {-code} ({signal.Signals(-code).name}){why}"
        return f"exited with code {code}"

    def kill(self) -> None:
        """End it now."""
        if self._process is not None and self._process.returncode is None:
            self._ended_by_us = True
            kill(self._process.pid)


def _memory() -> int:
    """Memory for large tensors; -1 where the system has none of that kind."""
    try:
        return make_memory()
    except (OSError, AttributeError):
        return -1


async def _spawn(theirs: socket.socket, memory: int, environment: dict[str, str]) -> asyncio.subprocess.Process:
    descriptors = [theirs.fileno(), memory] if memory >= 0 else [theirs.fileno()]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "argosy_runtime.execution.process.worker",
        *[str(descriptor) for descriptor in descriptors],
        pass_fds=descriptors,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        GROUPS.add(process.pid)
    except OSError:
        process.kill()
        await process.wait()
        raise
    return process


def _environment(before: Mapping[str, str]) -> dict[str, str]:
    """The worker finds this package wherever the server did, and `before` it what a model brings along."""
    package_root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
    found = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
    for name, folder in before.items():
        found[name] = os.pathsep.join(filter(None, [folder, found.get(name)]))
    return found
