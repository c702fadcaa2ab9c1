"""An instance on a thread of the server: for backends that release the interpreter lock while they compute."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from argosy_runtime.backends.contract import ExecutionTimes, InstanceSpec, ModelInstance, ServerCall
from argosy_runtime.backends.engines.commands import CheckReadiness, Command
from argosy_runtime.errors import ServingError, internal, unavailable
from argosy_runtime.messages import RESCHEDULED, InferRequest, InferResponse

from .calls.host import HostCalls
from .calls.server import OpenCalls, ServerCalls, Value
from .executing import carry_out, checks_readiness, execute, load
from .instance import Instance, Run

_log = logging.getLogger("argosy.execution")

# What a run may have posted to the event loop before its model waits for the loop to deliver it.
_MOST_POSTED: Final = 64
_MOST_POSTED_BYTES: Final = 8 << 20

# Loads that have timed out and not returned: they may be half done, and nothing can end their threads.
_stuck: Final[set[tuple[Path, str]]] = set()


class ThreadRun:
    """One batch, and the `Responder` to it.

    Responses before the batch ends reach the event loop with its end; those of a decoupled model, and later ones,
    at once. A model that makes them faster than the loop delivers them waits: so its memory is bounded before the
    first of them makes a slow reader pause it.
    """

    def __init__(self, number: int, requests: Sequence[InferRequest], instance: "ThreadInstance") -> None:
        self.number = number
        self.requests = requests
        self._instance = instance
        self._changed = instance.changed
        self._deferred: list[tuple[int, InferResponse]] = []
        self._returned = False
        self._cancelled: set[int] = set()
        self._paused: set[int] = set()
        self._posted = self._posted_bytes = 0

    def send(self, index: int, response: InferResponse, wait: bool = True) -> None:
        with self._changed:
            if wait and not response.final:
                self._changed.wait_for(lambda: not (self._holds_back(index) or self._is_full()))
            if not (self._returned or self._instance.decoupled):
                self._deferred.append((index, response))
                return
            size = response.nbytes
            self._posted += 1
            self._posted_bytes += size
        self._instance.post_response(self, index, response, size)

    def reschedule(self, index: int) -> None:
        self.send(index, RESCHEDULED)

    def is_cancelled(self, index: int) -> bool:
        return index in self._cancelled

    def is_paused(self, index: int) -> bool:
        return self._holds_back(index)

    def end(self) -> list[tuple[int, InferResponse]]:
        """Note that the model's `execute` has ended. Return the deferred responses."""
        with self._changed:
            self._returned = True
            return self._deferred

    def cancel(self, index: int) -> None:
        """Cancel request `index`, whose client has gone."""
        with self._changed:
            self._cancelled.add(index)
            self._changed.notify_all()

    def pause(self, index: int) -> None:
        """Pause request `index`, whose client reads slowly."""
        with self._changed:
            self._paused.add(index)

    def resume(self, index: int) -> None:
        """Resume request `index`."""
        with self._changed:
            self._paused.discard(index)
            self._changed.notify_all()

    def delivered(self, size: int) -> None:
        """Note that the event loop has delivered a response of `size` bytes that was posted to it."""
        with self._changed:
            was_full = self._is_full()
            self._posted -= 1
            self._posted_bytes -= size
            if was_full and not self._is_full():
                self._changed.notify_all()

    def _is_full(self) -> bool:
        return self._posted >= _MOST_POSTED or self._posted_bytes >= _MOST_POSTED_BYTES

    def _holds_back(self, index: int) -> bool:
        return index in self._paused and index not in self._cancelled


def _nowhere(*_: object) -> None:
    """Drop a message of a model that has ended."""


class ThreadLine:
    """A `CallLine` to the event loop of this process."""

    def __init__(self, post: Callable[..., None], calls: OpenCalls, lost: Callable[[ServingError], None]) -> None:
        self._post = post
        self._calls = calls
        self._lost = lost
        self._changed = threading.Condition()

    def infer(self, call: int, request: InferRequest, decoupled: bool) -> None:
        self._post(self._calls.infer, call, request, decoupled)

    def do(self, call: int, what: ServerCall, answered: bool) -> None:
        self._post(self._calls.do, call, what, answered)

    def change(self, call: int, how: str) -> None:
        changes = {"cancel": self._calls.cancel, "pause": self._calls.pause, "resume": self._calls.resume}
        self._post(changes[how], call)

    def wait(self, ready: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(ready)

    def expect(self, more: int) -> None:
        """Do nothing: the event loop delivers answers by itself."""

    def lost(self, error: ServingError) -> None:
        self._post(self._lost, error)

    def cork(self, corked: bool) -> None:
        """Do nothing: the event loop takes one response after the other."""

    def close(self) -> None:
        """Send nothing to the server any more, and break the reference cycle with it."""
        self._post = self._lost = _nowhere

    def changed(self) -> None:
        """Wake the threads that wait for an answer."""
        with self._changed:
            self._changed.notify_all()


class ThreadInstance(Instance):
    """One model on one daemon thread. A crash of native code there ends the server with it."""

    def __init__(
        self,
        spec: InstanceSpec,
        calls: ServerCalls,
        load_timeout: float,
        on_death: Callable[["ThreadInstance", ServingError], None],
    ) -> None:
        super().__init__(spec.name, spec.rank, spec.kind == "KIND_CPU")
        self._on_death = on_death
        self.decoupled = spec.config.model_transaction_policy.decoupled
        # One for all of its runs: creating one costs more than a short batch's way through a thread.
        self.changed = threading.Condition()
        self._spec = spec
        self._load_timeout = load_timeout
        self._work: SimpleQueue[ThreadRun | None] = SimpleQueue()
        self._thread_runs: dict[int, ThreadRun] = {}
        self._loop = asyncio.get_running_loop()
        self._calls = OpenCalls(calls, self)
        self._line = ThreadLine(self._post, self._calls, self._lost)
        self._host = HostCalls(self._line)
        self._runner: threading.Thread | None = None
        self._model: ModelInstance | None = None
        self._abandoned = threading.Event()
        self._ended = asyncio.Event()

    async def start(self) -> None:
        """Load on the instance's own thread. A model that takes too long is closed once it is loaded."""
        if self._key in _stuck:
            raise unavailable(stuck_message(self._spec))
        loaded: asyncio.Future[ServingError | None] = self._loop.create_future()
        self._runner = threading.Thread(target=self._main, args=(loaded,), name=f"model {self.name}", daemon=True)
        self._runner.start()
        try:
            error = await asyncio.wait_for(asyncio.shield(loaded), self._load_timeout)
        except TimeoutError:
            error = unavailable(load_timeout_message(self._spec, self._load_timeout))
        finally:
            if not loaded.done():
                self._abandon()
        if error is not None:
            self._calls.close()
            raise error

    @property
    def _key(self) -> tuple[Path, str]:
        return (self._spec.version_dir, self._spec.name)

    def _abandon(self) -> None:
        _stuck.add(self._key)
        self._abandoned.set()
        self._work.put(None)

    def _main(self, loaded: "asyncio.Future[ServingError | None]") -> None:
        try:
            model = load(self._spec, self._host)
        except ServingError as error:
            self._post(self._loaded, loaded, error)
            return
        self._model = model
        self.checks_readiness = checks_readiness(model)
        self._post(self._loaded, loaded, None)
        self._serve(model)
        self._model = None
        try:
            model.close()
        except (Exception, SystemExit):
            _log.exception("model instance '%s' could not be released", self.name)
        finally:
            self._post(self._ended.set)

    def _loaded(self, loaded: "asyncio.Future[ServingError | None]", error: ServingError | None) -> None:
        if self._abandoned.is_set():
            _stuck.discard(self._key)
        if not loaded.done():
            loaded.set_result(error)

    def _serve(self, model: ModelInstance) -> None:
        while (run := self._work.get()) is not None:
            times, error = execute(model, self.name, run.requests, run)
            self._post(self._finish, run, run.end(), times, error)

    def _finish(
        self,
        run: ThreadRun,
        deferred: list[tuple[int, InferResponse]],
        times: ExecutionTimes | None,
        error: ServingError | None,
    ) -> None:
        if (
            times is not None
            and len(deferred) == len(run.requests)
            and all(index == at and response is not RESCHEDULED for at, (index, response) in enumerate(deferred))
        ):
            self._answered(run.number, [response for _, response in deferred], times)
        else:
            self._done(run.number, times, error, deferred)
        self._forget_run(run.number)

    def post_response(self, run: ThreadRun, index: int, response: InferResponse, size: int) -> None:
        """Send a response of `size` bytes that does not wait for the end of its batch, from the model's threads."""
        self._post(self._take, run, index, response, size)

    def _take(self, run: ThreadRun, index: int, response: InferResponse, size: int) -> None:
        self._respond(run.number, index, response)
        run.delivered(size)
        self._forget_run(run.number)

    def _forget_run(self, number: int) -> None:
        if number not in self._runs:
            self._thread_runs.pop(number, None)

    async def manage(self, command: Command) -> None:
        """Have the model say whether it is ready, while it takes requests. It knows no other command."""
        model = self._model
        if model is None or not isinstance(command, CheckReadiness):
            await super().manage(command)
            return
        done: asyncio.Future[None] = self._loop.create_future()

        def work() -> None:
            error: ServingError | None = None
            try:
                carry_out(model, f"model instance '{self.name}'", command)
            except ServingError as problem:
                error = problem
            self._post(_end, done, error)

        threading.Thread(target=work, name=f"readiness of {self.name}", daemon=True).start()
        await done

    def _post(self, function: Callable[..., None], *args: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    def _lost(self, error: ServingError) -> None:
        """End an instance that failed itself; its thread releases the model while another instance replaces it."""
        if self._loss is not None:
            return
        error.instance_lost = True
        self._work.put(None)
        self._calls.close()
        # First the dispatcher is notified, so that it sends no batch to an instance that has ended.
        self._on_death(self, error)
        self._fail_all(error)

    def give_up(self, words: str) -> None:
        text = f"model instance '{self.name}' met an error of its device, and starts again: {words}"
        self._lost(internal(text, device_error=words))

    def _execute(self, run: Run, requests: Sequence[InferRequest]) -> None:
        thread_run = self._thread_runs[run.id] = ThreadRun(run.id, requests, self)
        self._work.put(thread_run)

    def cancel(self, run: Run, index: int) -> None:
        if (thread_run := self._thread_runs.get(run.id)) is not None:
            thread_run.cancel(index)
        self._calls.withdraw()

    def pause(self, run: Run, index: int) -> None:
        if (thread_run := self._thread_runs.get(run.id)) is not None:
            thread_run.pause(index)

    def resume(self, run: Run, index: int) -> None:
        if (thread_run := self._thread_runs.get(run.id)) is not None:
            thread_run.resume(index)

    def respond(self, call: int, response: InferResponse) -> None:
        self._host.respond(call, response)
        self._line.changed()

    def reply(self, call: int, value: Value, error: ServingError | None) -> None:
        self._host.reply(call, value, error)
        self._line.changed()

    async def stop(self, grace: float) -> None:
        """Release the model. One that does not end in time is left to its daemon thread."""
        if self._runner is None or not self._runner.is_alive():
            return
        self._work.put(None)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), grace)
        self._fail_all(unavailable(f"model instance '{self.name}' was unloaded"))
        self._calls.close()
        self._line.close()


def _end(done: "asyncio.Future[None]", error: ServingError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def load_timeout_message(spec: InstanceSpec, seconds: float) -> str:
    """Return the error of a model that does not finish loading."""
    return (
        f"failed to load '{spec.config.name}' version {spec.version}: instance '{spec.name}' is still loading after "
        f"{seconds:g} s; if it needs longer, raise --model-load-timeout-secs or the parameter LOAD_TIMEOUT_SECONDS of "
        "its config"
    )


def stuck_message(spec: InstanceSpec) -> str:
    """Return the error of a model whose last load has timed out and still goes on."""
    return (
        f"failed to load '{spec.config.name}' version {spec.version}: an earlier load of instance '{spec.name}' took "
        "too long and still goes on in a thread of this server, which nothing can end; it can be loaded again when "
        "that one returns, or with the parameter ISOLATION set to process"
    )
