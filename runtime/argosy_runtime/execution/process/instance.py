"""An instance in a process of its own: its crash, its leak or its endless loop is its own."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.errors import ServingError, internal, invalid, unavailable
from argosy_runtime.execution.calls import NAMES, ServerCalls
from argosy_runtime.execution.instance import Instance, Run
from argosy_runtime.execution.thread import load_timeout_message
from argosy_runtime.messages import InferRequest

from .frames import FrameReader, Message, encode
from .worker import pack_spec

_STOP_SECONDS = 30.0
_JOIN_BELOW = 1 << 16


class WorkerProcess(asyncio.Protocol):
    """A worker process and the socket to it."""

    def __init__(self, on_message: Callable[[Message], None], on_lost: Callable[[], None]) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        self._frames = FrameReader()
        self._transport: asyncio.WriteTransport | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process; it waits for messages."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = await _spawn(theirs)
        except BaseException:
            ours.close()
            raise
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        for message in self._frames.feed(data):
            self._on_message(message)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._on_lost()

    def send(self, *message: Any) -> None:
        """One message; dropped where the process is gone, whose loss is told by `on_lost`."""
        if self._transport is None or self._transport.is_closing():
            return
        chunks = encode(message)
        if sum(map(len, chunks)) < _JOIN_BELOW:
            self._transport.write(b"".join(chunks))
        else:
            self._transport.writelines(chunks)

    async def end(self, grace: float) -> str:
        """Wait for the process to go, kill it after `grace` seconds; how it ended, in words."""
        if self._process is None:
            return "never started"
        try:
            code = await asyncio.wait_for(self._process.wait(), grace)
        except TimeoutError:
            self._process.kill()
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


class ProcessInstance(Instance):
    """One model in one worker process."""

    def __init__(
        self,
        spec: InstanceSpec,
        calls: ServerCalls,
        load_timeout: float,
        on_death: Callable[["ProcessInstance", ServingError], None],
    ) -> None:
        super().__init__(spec.name, spec.config.model_transaction_policy.decoupled)
        self._spec = spec
        self._calls = calls
        self._load_timeout = load_timeout
        self._on_death = on_death
        self._worker = WorkerProcess(self._receive, self._lost)
        self._answer: asyncio.Future[Message] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = False
        self._stopping = False

    async def start(self) -> None:
        """Start the process and load the model in it."""
        answer = await self._ask("load")
        if answer[1] is not None:
            await self._quit()
            raise answer[1]
        self._started = True

    async def complete(self) -> ModelConfig:
        """Instead of loading: have the backend fill in the config, then end."""
        answer = await self._ask("complete")
        await self._quit()
        if answer[1] is not None:
            raise answer[1]
        return ModelConfig.FromString(answer[2])

    async def _quit(self, grace: float = _STOP_SECONDS) -> None:
        self._stopping = True
        self._worker.send("stop")
        await self._worker.end(grace)

    async def _ask(self, what: str) -> Message:
        self._answer = asyncio.get_running_loop().create_future()
        try:
            await self._worker.start()
            self._worker.send(what, pack_spec(self._spec))
            return await asyncio.wait_for(self._answer, self._load_timeout)
        except TimeoutError:
            raise unavailable(load_timeout_message(self._spec, self._load_timeout)) from None
        except OSError as error:
            raise internal(f"cannot start its process: {error}") from error
        finally:
            if not self._answer.done() or self._answer.cancelled() or self._answer.exception():
                self._stopping = True
                self._worker.kill()
                await self._worker.end(_STOP_SECONDS)

    def _receive(self, message: Message) -> None:
        kind = message[0]
        if kind == "done":
            _, run_id, responses, times, error = message
            self._free(run_id)
            for index, response in responses:
                self._respond(run_id, index, response)
            self._done(run_id, times, error)
        elif kind == "response":
            self._respond(message[1], message[2], message[3])
        elif kind == "call":
            self._spawn(self._serve_call(message[1], message[2], message[3]))
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(message)

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_call(self, call_id: int, name: str, args: tuple[Any, ...]) -> None:
        try:
            if name not in NAMES:
                raise invalid(f"a model may not call '{name}'")
            value = await getattr(self._calls, name)(*args)
        except ServingError as error:
            self._worker.send("reply", call_id, False, error)
        except Exception as error:
            self._worker.send("reply", call_id, False, internal(f"{type(error).__name__}: {error}"))
        else:
            if call_id >= 0:
                self._worker.send("reply", call_id, True, value)

    def _lost(self) -> None:
        if not self._stopping:
            self._spawn(self._bury())

    async def _bury(self) -> None:
        how = await self._worker.end(grace=1.0)
        if self._answer is not None and not self._answer.done():
            error = internal(
                f"failed to load '{self._spec.config.name}' version {self._spec.version}: "
                f"its process {how} while loading"
            )
            self._answer.set_exception(error)
        if self._started:
            self._started = False
            error = internal(
                f"Failed to process the request(s) for model '{self.name}', message: its process {how}; "
                "it is being restarted"
            )
            # First the dispatcher must know, lest it give the next batch to what is no longer there.
            self._on_death(self, error)
            self._fail_all(error)

    def _execute(self, run: Run, requests: Sequence[InferRequest]) -> None:
        self._worker.send("execute", run.id, requests)

    def cancel(self, run: Run, index: int) -> None:
        """See `Instance`."""
        self._worker.send("cancel", run.id, index)

    def pause(self, run: Run, index: int) -> None:
        """See `Instance`."""

    def resume(self, run: Run, index: int) -> None:
        """See `Instance`."""

    async def stop(self, grace: float) -> None:
        """See `Instance`."""
        await self._quit(grace)
        self._fail_all(unavailable(f"model instance '{self.name}' was unloaded"))


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
