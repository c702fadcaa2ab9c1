"""The process of one model instance: `python -m argosy_runtime.execution.process.worker FD [MEMORY]`.

Its main thread reads the socket, loads and runs the model: one read, one execute, one write a batch. When the server is
gone (end of file), the process ends.
"""

import gc
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from argosy_runtime.backends import resolve
from argosy_runtime.backends.contract import InstanceSpec, ModelInstance, ServerCall
from argosy_runtime.backends.engines.commands import CheckReadiness
from argosy_runtime.errors import ServingError, internal
from argosy_runtime.execution.calls.host import HostCalls
from argosy_runtime.execution.executing import carry_out, checks_readiness, execute, load
from argosy_runtime.messages import InferRequest

from .inbox import Inbox
from .outbox import Outbox
from .reserved import begin_reports
from .runs import WorkerRun
from .wire.arena import Arena
from .wire.control import (
    UNANSWERED,
    CallChanged,
    Called,
    Complete,
    Completed,
    Load,
    Loaded,
    Lost,
    Manage,
    Managed,
    Reply,
    Stop,
    ToProcess,
    read_to_process,
)
from .wire.frames import ANSWER, CANCEL, CONTROL, EXECUTE, PAUSE, RELEASE, RESUME, Frame, read_release
from .wire.packing import ErrorBody
from .wire.requests import RequestReader
from .wire.responses import ResponseReader


class SocketLine:
    """A `CallLine` over the socket."""

    def __init__(self, inbox: Inbox, outbox: Outbox) -> None:
        self._inbox = inbox
        self._outbox = outbox

    def infer(self, call: int, request: InferRequest, decoupled: bool) -> None:
        self._outbox.call(call, request, decoupled)

    def do(self, call: int, what: ServerCall, answered: bool) -> None:
        self._outbox.control(Called(call if answered else UNANSWERED, what))

    def change(self, call: int, how: str) -> None:
        self._outbox.control(CallChanged(call, how))

    def wait(self, ready: Callable[[], bool]) -> None:
        self._inbox.wait(ready)

    def expect(self, more: int) -> None:
        self._inbox.expect(more)

    def lost(self, error: ServingError) -> None:
        """End this process, which ends the instance for the server. Frames sent before reach the server."""
        self._outbox.control(Lost(ErrorBody.of(error)))
        self._outbox.flush()
        os._exit(1)

    def cork(self, corked: bool) -> None:
        if corked:
            self._outbox.cork()
        else:
            self._outbox.uncork()


class Worker:
    """The process. Frames are read in their order, on whatever thread; work is the main thread's."""

    def __init__(self, sock: socket.socket, arena: Arena | None = None) -> None:
        self._arena = arena
        self._outbox = Outbox(sock, arena)
        incoming = arena.incoming if arena is not None else None
        self._inbox = Inbox(sock, self._sort, incoming, self._outbox.releases)
        self._host = HostCalls(SocketLine(self._inbox, self._outbox))
        self._requests = RequestReader()
        self._answers = ResponseReader()
        self._work: deque[WorkerRun | ToProcess] = deque()
        self._runs: dict[int, WorkerRun] = {}
        self._model: ModelInstance | None = None
        self._name = ""
        self._backend = ""
        self._decoupled = False
        self._commands = ThreadPoolExecutor(1, thread_name_prefix="commands")  # starts its thread when it has work

    def main(self) -> None:
        """Serve until a `Stop` comes."""
        while self._do(self._next()):
            pass
        # A command may wait for a request that never ends, which closing the model ends.
        self._commands.shutdown(wait=False, cancel_futures=True)
        if self._model is not None:
            self._model.close()
        _end_children()

    def _do(self, work: WorkerRun | ToProcess) -> bool:
        """Do one piece of work. Return whether more is to follow.

        Nothing of a batch is kept while the next one is waited for.
        """
        if isinstance(work, WorkerRun):
            if self._model is not None:
                work.end(*execute(self._model, self._name, work.requests, work))
        elif isinstance(work, Load):
            self._load(work.spec.spec())
        elif isinstance(work, Complete):
            self._complete(work.spec.spec())
        return not isinstance(work, Stop)

    def _next(self) -> WorkerRun | ToProcess:
        if not self._work:
            self._inbox.wait(self._has_work)
        return self._work.popleft()

    def _has_work(self) -> bool:
        return bool(self._work)

    def _sort(self, frame: Frame) -> None:
        kind = frame.kind
        if kind == EXECUTE:
            self._work.append(self._read_run(frame))
        elif kind == ANSWER:
            self._host.respond(frame.subject, self._answers.read(frame, bool(frame.number())))
        elif kind == RELEASE:
            read_release(frame, self._arena)
        elif kind == CONTROL:
            message = read_to_process(frame)
            if isinstance(message, Reply):
                self._host.reply(message.call, message.value, message.error.error() if message.error else None)
            elif isinstance(message, Manage):
                self._begin(message)
            else:
                self._work.append(message)
        elif (run := self._runs.get(frame.subject)) is not None:
            _change(run, kind, frame.number())

    def _read_run(self, frame: Frame) -> WorkerRun:
        number = frame.subject
        requests: list[InferRequest] = []
        while frame.has_more():
            requests.append(self._requests.read(frame))
        run = WorkerRun(number, requests, self._decoupled, self._inbox, self._outbox, self._forget)
        self._runs[number] = run
        return run

    def _forget(self, number: int) -> None:
        self._runs.pop(number, None)

    def _load(self, spec: InstanceSpec) -> None:
        self._name = spec.name
        self._backend = spec.config.backend
        self._decoupled = spec.config.model_transaction_policy.decoupled
        try:
            model = load(spec, self._host)
        except ServingError as error:
            self._outbox.control(Loaded(ErrorBody.of(error)))
            return
        # The loaded objects stay: the garbage collector need not look at them again and again.
        gc.collect()
        gc.freeze()
        self._model = model  # before the server knows: its first command may come at once, to another thread
        checked = checks_readiness(model)
        if checked:
            # A thread that always reads: the check must reach the model while the main thread runs it.
            self._inbox.expect(1)
        self._outbox.control(Loaded(checks_readiness=checked))
        if spec.kind != "KIND_CPU":
            begin_reports(lambda reserved: self._outbox.control(Called(UNANSWERED, reserved)))

    def _begin(self, work: Manage) -> None:
        """Begin a command on a thread of its own: requests go on while a model reads an adapter."""
        if isinstance(work.command, CheckReadiness):
            # A model that never says whether it is ready must keep neither commands nor the end of the process waiting.
            threading.Thread(target=self._manage, args=(work,), name="readiness", daemon=True).start()
        else:
            self._commands.submit(self._manage, work)

    def _manage(self, work: Manage) -> None:
        try:
            carry_out(self._model, f"model instance '{self._name}': backend '{self._backend}'", work.command)
        except ServingError as error:
            self._outbox.control(Managed(work.number, ErrorBody.of(error)))
        else:
            self._outbox.control(Managed(work.number))

    def _complete(self, spec: InstanceSpec) -> None:
        try:
            config = resolve(spec.config.backend).complete_config(spec.model_dir, spec.version_dir, spec.config)
        except ServingError as error:
            self._outbox.control(Completed(error=ErrorBody.of(error)))
        except Exception as error:
            text = f"failed to complete the config of '{spec.config.name}': {type(error).__name__}: {error}"
            self._outbox.control(Completed(error=ErrorBody.of(internal(text))))
        else:
            self._outbox.control(Completed(config.SerializeToString()))


def _end_children() -> None:
    """Kill the children that a model has started by multiprocessing: Python would wait for them."""
    if (multiprocessing := sys.modules.get("multiprocessing")) is not None:
        for child in multiprocessing.active_children():
            child.kill()


def _change(run: WorkerRun, kind: int, index: int) -> None:
    if kind == CANCEL:
        run.cancel(index)
    elif kind == PAUSE:
        run.pause(index)
    elif kind == RESUME:
        run.resume(index)


def main() -> None:
    """Run the worker with its arguments: file descriptors of the socket and, if there is any, of the shared memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    arena = None
    if len(sys.argv) > 2:
        memory = int(sys.argv[2])
        arena = Arena(memory, server=False)
        os.close(memory)
    Worker(socket.socket(fileno=int(sys.argv[1])), arena).main()


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__":
    # A process that a model has spawned.
    from argosy_runtime.backends.python.loader import adopt

    adopt()
