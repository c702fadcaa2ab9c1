"""An instance in a process of its own, which confines its crash, its leak or its endless loop.

The process's frames are data, whatever its model does: they are read by lengths and types, and invalid ones end the
process, not the server.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from typing import Any

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import ExecutionTimes, InstanceSpec
from argosy_runtime.backends.engines.commands import Command
from argosy_runtime.backends.environments.choice import environment_of, is_certain
from argosy_runtime.backends.environments.inspection import replaced
from argosy_runtime.backends.environments.process import ProcessEnvironment, of_the_server
from argosy_runtime.errors import FailureReason, ServingError, internal, unavailable
from argosy_runtime.execution.calls.server import OpenCalls, ServerCalls, Value
from argosy_runtime.execution.instance import Instance, Run
from argosy_runtime.execution.thread import load_timeout_message
from argosy_runtime.messages import RESCHEDULED, InferRequest, InferResponse

from .connection import WorkerConnection
from .runs import ANSWERED, GOES_ON
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
    SpecBody,
    Stop,
    ToProcess,
    control_frame,
    read_from_process,
)
from .wire.frames import (
    ANSWER,
    CALL,
    CANCEL,
    CONTROL,
    EXECUTE,
    PAUSE,
    RESPONSES,
    RESUME,
    Frame,
    FrameError,
    FrameWriter,
)
from .wire.packing import ErrorBody
from .wire.requests import RequestReader, RequestWriter
from .wire.responses import AGAIN, EVERY, FINAL, ResponseReader, ResponseWriter

_STOP_SECONDS = 30.0


def _nothing() -> None:
    """Release nothing."""


def _release(reading: "asyncio.Future[ProcessEnvironment]") -> None:
    """Release an environment whose reading has timed out."""
    if not reading.cancelled() and reading.exception() is None:
        reading.result().release()


class ProcessInstance(Instance):
    """One model in one worker process."""

    def __init__(
        self,
        spec: InstanceSpec,
        calls: ServerCalls,
        load_timeout: float,
        on_death: Callable[["ProcessInstance", ServingError], None],
    ) -> None:
        super().__init__(spec.name, spec.rank, spec.kind == "KIND_CPU")
        self._spec = spec
        self._load_timeout = load_timeout
        self._on_death = on_death
        self._connection = WorkerConnection(self)
        self._calls = OpenCalls(calls, self)
        self._requests = RequestWriter()
        self._responses = ResponseReader()
        self._call_requests = RequestReader()
        self._answers = ResponseWriter()
        self._answer: asyncio.Future[Loaded | Completed] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._nonsense = self._device_error = self._failure = ""
        self._commands = count()
        self._managed: dict[int, asyncio.Future[ServingError | None]] = {}
        self._replaced: list[str] = []
        self._release_environment: Callable[[], None] = _nothing
        self._started = False
        self._stopping = False

    async def start(self) -> None:
        """Start the process and load the model in it."""
        answer = await self._ask(Load(SpecBody.of(self._spec)))
        if answer.error is not None:
            await self._quit()
            raise answer.error.error()
        self.checks_readiness = isinstance(answer, Loaded) and answer.checks_readiness
        self._started = True

    async def complete(self) -> ModelConfig:
        """Complete the config by the backend instead of loading, then end."""
        answer = await self._ask(Complete(SpecBody.of(self._spec)))
        await self._quit()
        if answer.error is not None:
            raise answer.error.error()
        if not isinstance(answer, Completed):
            raise internal(f"failed to complete the config of '{self._spec.config.name}': nothing came of it")
        return answer.completed()

    async def _quit(self, grace: float = _STOP_SECONDS) -> None:
        self._stopping = True
        self._connection.send(control_frame(Stop()))
        await self._end(grace)

    async def _ask(self, what: ToProcess) -> Loaded | Completed:
        self._answer = asyncio.get_running_loop().create_future()
        try:
            await self._connection.start(await self._environment())
            self.pid = self._connection.pid
            self._connection.send(control_frame(what))
            return await asyncio.wait_for(self._answer, self._load_timeout)
        except TimeoutError:
            failure: BaseException = unavailable(load_timeout_message(self._spec, self._load_timeout))
        except OSError as error:
            failure = internal(f"cannot start its process: {error}")
            failure.__cause__ = error
        except BaseException as other:
            failure = other
        self._stopping = True
        self._connection.kill()
        await self._end(_STOP_SECONDS)
        raise failure

    async def _environment(self) -> ProcessEnvironment:
        """Return the environment of the process, which is released when that has ended.

        Raises ServingError, and TimeoutError where a file does not answer.
        """
        if is_certain(self._spec):
            return of_the_server()
        reading = asyncio.ensure_future(asyncio.to_thread(environment_of, self._spec))
        try:
            environment = await asyncio.wait_for(asyncio.shield(reading), self._load_timeout)
        except BaseException:
            reading.add_done_callback(_release)
            raise
        self._release_environment = environment.release
        if environment.packages is not None:
            self._replaced = await asyncio.to_thread(replaced, environment.packages)
        return environment

    async def _end(self, grace: float) -> str:
        """Wait for the process to end, kill it after `grace` seconds, and release what it used. Return how it ended."""
        how = await self._connection.end(grace)
        self._calls.close()
        self._release_environment()
        return how

    def received(self, frame: Frame) -> None:
        kind = frame.kind
        if kind == RESPONSES:
            self._receive_responses(frame)
        elif kind == CALL:
            decoupled = bool(frame.number())
            self._calls.infer(frame.subject, self._call_requests.read(frame), decoupled)
        elif kind == CONTROL:
            self._receive_message(frame)
        else:
            raise FrameError(f"a frame of kind {kind}")

    def _receive_responses(self, frame: Frame) -> None:
        run_id = frame.subject
        state = frame.number()
        times = ExecutionTimes(frame.number(), frame.number(), frame.number())
        responses: list[InferResponse] = []
        indexes: list[int] = []
        error: ServingError | None = None
        in_order = True
        while frame.has_more():
            number = frame.number()
            index = number & EVERY
            response = RESCHEDULED if number >= AGAIN else self._responses.read(frame, number >= FINAL)
            if index == EVERY:
                error = response.error
            else:
                in_order = in_order and number == len(indexes) | FINAL
                indexes.append(index)
                responses.append(response)
        if state == ANSWERED and in_order and error is None:
            self._answered(run_id, responses, times)
        elif state != GOES_ON:
            by_request = list(zip(indexes, responses, strict=True))
            self._done(run_id, times if state == ANSWERED else None, error, by_request)
        else:
            for index, response in zip(indexes, responses, strict=True):
                self._respond(run_id, index, response)

    def _receive_message(self, frame: Frame) -> None:
        message = read_from_process(frame)
        if isinstance(message, Called):
            self._calls.do(message.call, message.what, message.call != UNANSWERED)
        elif isinstance(message, CallChanged):
            self._change_call(message)
        elif isinstance(message, Managed):
            self._end_command(message.number, message.error.error() if message.error is not None else None)
        elif isinstance(message, Lost):
            self._failure = message.error.message
        elif self._answer is not None and not self._answer.done():
            if isinstance(message, Completed):
                message.completed()
            self._answer.set_result(message)

    async def manage(self, command: Command) -> None:
        """Have the model carry out a command. Raises ServingError."""
        if self._stopping or not self._started:
            raise unavailable(f"model instance '{self.name}' is not loaded")
        number = next(self._commands)
        done = self._managed[number] = asyncio.get_running_loop().create_future()
        self._connection.send(control_frame(Manage(number, command)))
        error = await done
        if error is not None:
            raise error

    def _end_command(self, number: int, error: ServingError | None) -> None:
        done = self._managed.pop(number, None)
        if done is not None and not done.done():
            done.set_result(error)

    def _change_call(self, message: CallChanged) -> None:
        if message.how == "cancel":
            self._calls.cancel(message.call)
        elif message.how == "pause":
            self._calls.pause(message.call)
        elif message.how == "resume":
            self._calls.resume(message.call)
        else:
            raise FrameError(f"a call that shall {message.how}")

    def respond(self, call: int, response: InferResponse) -> None:
        frame = self._connection.frame()
        frame.numbers.append(response.final)
        self._answers.add(frame, response)
        self._connection.send(frame.chunks(ANSWER, call))

    def reply(self, call: int, value: Value, error: ServingError | None) -> None:
        self._connection.send(control_frame(Reply(call, value, None if error is None else ErrorBody.of(error))))

    def blocked(self, full: bool) -> None:
        if full:
            self._calls.pause_all()
        else:
            self._calls.resume_all()

    def broken(self, error: FrameError) -> None:
        self._nonsense = str(error)
        self._connection.kill()

    def give_up(self, words: str) -> None:
        """End the process: the next one initializes the device again."""
        if self._started and not self._stopping:
            self._device_error = words
            self._connection.kill()

    def lost(self) -> None:
        if not self._stopping:
            self._spawn(self._bury())

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _bury(self) -> None:
        how = await self._end(grace=1.0)
        if self._nonsense:
            how = f"was ended, because it sent what no model's process sends ({self._nonsense})"
        if self._failure:
            how = f"ended itself, because of this: {self._failure}"
        if self._device_error:
            how = f"met an error of its device, and was ended: {self._device_error}"
        if self._answer is not None and not self._answer.done():
            error = internal(
                f"failed to load '{self._spec.config.name}' version {self._spec.version}: "
                f"its process {how} while loading{self._stand_ins()}"
            )
            self._answer.set_exception(error)
        if self._started:
            self._started = False
            error = internal(
                f"Failed to process the request(s) for model '{self.name}', message: its process {how}; "
                "it is being restarted",
                FailureReason.OUT_OF_MEMORY if self._connection.out_of_memory else FailureReason.BACKEND,
                self._device_error,
            )
            error.instance_lost = True
            # First the dispatcher is notified, so that it sends no batch to an instance that has ended.
            self._on_death(self, error)
            self._fail_all(error)
            for number in list(self._managed):
                self._end_command(number, error)

    def _stand_ins(self) -> str:
        """Return which packages of the model's own environment may keep its process from starting."""
        if not self._replaced:
            return ""
        return f"; its environment has, in place of the server's packages: {', '.join(self._replaced)}"

    def _execute(self, run: Run, requests: Sequence[InferRequest]) -> None:
        frame = self._connection.frame()
        try:
            for request in requests:
                self._requests.add(frame, request)
        except BaseException:
            frame.drop()
            self._requests = RequestWriter()  # the old one counts on an unsent frame
            raise
        self._connection.send(frame.chunks(EXECUTE, run.id))

    def cancel(self, run: Run, index: int) -> None:
        self._signal(CANCEL, run, index)
        self._calls.withdraw()

    def pause(self, run: Run, index: int) -> None:
        self._signal(PAUSE, run, index)

    def resume(self, run: Run, index: int) -> None:
        self._signal(RESUME, run, index)

    def _signal(self, kind: int, run: Run, index: int) -> None:
        frame = FrameWriter()
        frame.numbers.append(index)
        self._connection.send(frame.chunks(kind, run.id))

    async def stop(self, grace: float) -> None:
        await self._quit(grace)
        unloaded = unavailable(f"model instance '{self.name}' was unloaded")
        self._fail_all(unloaded)
        for number in list(self._managed):
            self._end_command(number, unloaded)
