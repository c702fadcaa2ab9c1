"""The server's end of a model's process: starting it, exchanging frames over a socket, ending it."""

import asyncio
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, cast

from argosy_runtime.backends.environments.process import ProcessEnvironment
from argosy_runtime.failures.out_of_memory import OOM_KILLS
from argosy_runtime.tensors import Data

from .groups import GROUPS, kill
from .wire.arena import Arena, make_memory
from .wire.frames import RELEASE, Frame, FrameCutter, FrameError, FrameWriter, read_release, release_frame

_JOIN_BELOW: Final = 1 << 16
# Time that the process's last frames are waited for: a child of it may have the socket too.
_LAST_WORDS_SECONDS: Final = 1.0
# Time that releases of shared memory wait for another frame to carry them.
_RELEASE_SECONDS: Final = 0.05


class Peer(Protocol):
    """Receiver of a process's frames. Called on the event loop."""

    def received(self, frame: Frame) -> None:
        """Take a frame. Raises FrameError where its content is invalid."""

    def broken(self, error: FrameError) -> None:
        """Note that the process sent invalid data. Nothing more is read."""

    def lost(self) -> None:
        """Note that the socket is closed."""

    def blocked(self, full: bool) -> None:
        """Note that the process reads slower than it is written to, or (where not `full`) that it has caught up."""


class _NoPeer:
    """Peer of a connection that is lost."""

    def received(self, frame: Frame) -> None:
        """Ignore a frame."""

    def broken(self, error: FrameError) -> None:
        """Ignore invalid data."""

    def lost(self) -> None:
        """Ignore a loss that was reported before."""

    def blocked(self, full: bool) -> None:
        """Ignore a full socket."""


_NO_PEER: Final = _NoPeer()


class WorkerConnection(asyncio.BufferedProtocol):
    """A worker process and the socket to it. `out_of_memory`: the kernel killed it for want of memory.

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

    async def start(self, environment: ProcessEnvironment) -> None:
        """Start the process, which then waits for messages. Raises OSError."""
        ours, theirs = socket.socketpair()
        memory = _memory()
        try:
            with theirs:
                if memory >= 0:
                    self._arena = Arena(memory, server=True)
                    self._cutter = FrameCutter(writable=False, incoming=self._arena.incoming)
                self._process = await _spawn(theirs, memory, environment)
                self._watch = asyncio.get_running_loop().create_task(self._watched(self._process))
        except BaseException:
            ours.close()
            raise
        finally:
            if memory >= 0:
                os.close(memory)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
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
        """Return the buffer for the next bytes."""
        return self._cutter.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Pass the frames that have arrived to the peer."""
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
            self._timer = asyncio.get_running_loop().call_later(_RELEASE_SECONDS, self._send_releases)

    def _send_releases(self) -> None:
        """Send pending releases, which the process may wait for, while no other frame does."""
        self._timer = None
        if self._arena is None:
            return
        incoming = self._arena.incoming
        if incoming.any_gone:
            self.send([])
        if incoming.any_lent:
            self._timer = asyncio.get_running_loop().call_later(_RELEASE_SECONDS, self._send_releases)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the shared memory, and notify the peer."""
        self._is_lost = True
        for timer in (self._timer, self._hanging_up):
            if timer is not None:
                timer.cancel()
        # Explicitly, and without the cycle of peers: memory and its descriptor must not wait for the garbage collector.
        if self._arena is not None:
            self._arena.close()
            self._arena = None
        peer, self._peer = self._peer, _NO_PEER
        peer.lost()

    def pause_writing(self) -> None:
        """Report a full socket."""
        self._peer.blocked(True)

    def resume_writing(self) -> None:
        """Report that the socket has room again."""
        self._peer.blocked(False)

    def frame(self) -> FrameWriter:
        """Return a frame to be filled and sent."""
        return FrameWriter(self._arena.outgoing if self._arena is not None else None)

    def send(self, chunks: list[Data]) -> None:
        """Send one frame; it is dropped where the process is gone, which the peer learns from `lost`."""
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
        """Wait for the process to end, and kill it after `grace` seconds. Return how it ended, in words."""
        if self._watch is None:
            return "never started"
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._watch), grace)
        if not self._watch.done():
            self.kill()
        code = await asyncio.shield(self._watch)
        if self._transport is not None:
            self._transport.close()
        if code < 0:
            self.out_of_memory = code == -signal.SIGKILL and not self._ended_by_us and OOM_KILLS.one_more()
            why = " for want of memory" if self.out_of_memory else ""
            return f"was killed by signal {-code} ({signal.Signals(-code).name}){why}"
        return f"exited with code {code}"

    @property
    def pid(self) -> int:
        """Number of the process; 0 before it is started."""
        return 0 if self._process is None else self._process.pid

    def kill(self) -> None:
        """Kill the process."""
        if self._process is not None and self._process.returncode is None:
            self._ended_by_us = True
            kill(self._process.pid)


def _memory() -> int:
    """Return a file descriptor of memory for large tensors; -1 where the system has none of that kind."""
    try:
        return make_memory()
    except (OSError, AttributeError):
        return -1


async def _spawn(theirs: socket.socket, memory: int, environment: ProcessEnvironment) -> asyncio.subprocess.Process:
    descriptors = [theirs.fileno(), memory] if memory >= 0 else [theirs.fileno()]
    process = await asyncio.create_subprocess_exec(
        environment.executable,
        *_first_code(environment),
        *[str(descriptor) for descriptor in descriptors],
        pass_fds=descriptors,
        env=environment.variables,
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        GROUPS.add(process.pid)
        return process
    except OSError as error:
        failure = error
    process.kill()
    await process.wait()
    raise failure


def _first_code(environment: ProcessEnvironment) -> list[str]:
    """Return the interpreter's arguments that name the worker, or what shows the server's code to it first."""
    if environment.finds_the_servers_code:
        return ["-m", "argosy_runtime.execution.process.worker"]
    # While a compiled module is imported it has no `__file__` yet.
    return ["-P", str(Path(__file__).with_name("bootstrap.py"))]
