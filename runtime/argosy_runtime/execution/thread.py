"""An instance on a thread of the server: for backends that release the interpreter lock while they compute."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from argosy_runtime.backends.contract import ExecutionTimes, InstanceSpec, ModelInstance
from argosy_runtime.errors import ServingError, unavailable
from argosy_runtime.messages import InferRequest, InferResponse

from .calls import ServerCalls, ThreadHost
from .executing import BatchCancellations, execute, load
from .instance import Instance, Run


class _Responder:
    """Passes the responses of one run to the event loop."""

    def __init__(self, post: Callable[..., None], deliver: Callable[..., None], run_id: int, gone: BatchCancellations):
        self._post = post
        self._deliver = deliver
        self._run_id = run_id
        self._gone = gone

    def send(self, index: int, response: InferResponse) -> None:
        """See `Responder`."""
        self._post(self._deliver, self._run_id, index, response)

    def is_cancelled(self, index: int) -> bool:
        """See `Responder`."""
        return self._gone.holds(self._run_id, index)


class ThreadInstance(Instance):
    """One model on one daemon thread. A crash of native code there takes the server with it; that is the price."""

    def __init__(self, spec: InstanceSpec, calls: ServerCalls, load_timeout: float) -> None:
        super().__init__(spec.name, spec.config.model_transaction_policy.decoupled)
        self._spec = spec
        self._calls = calls
        self._load_timeout = load_timeout
        self._work: SimpleQueue[tuple[int, Sequence[InferRequest]] | None] = SimpleQueue()
        self._gone = BatchCancellations()
        self._loop = asyncio.get_running_loop()
        self._thread: threading.Thread | None = None
        self._ended = asyncio.Event()

    async def start(self) -> None:
        """Load on the instance's own thread."""
        loaded: asyncio.Future[ServingError | None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._main, args=(loaded,), name=f"model {self.name}", daemon=True)
        self._thread.start()
        try:
            error = await asyncio.wait_for(asyncio.shield(loaded), self._load_timeout)
        except TimeoutError:
            error = unavailable(load_timeout_message(self._spec, self._load_timeout))
        if error is not None:
            raise error

    def _main(self, loaded: "asyncio.Future[ServingError | None]") -> None:
        try:
            model = load(self._spec, ThreadHost(self._calls, self._loop))
        except ServingError as error:
            self._post(_resolve, loaded, error)
            return
        self._post(_resolve, loaded, None)
        self._serve(model)
        model.close()
        self._post(self._ended.set)

    def _serve(self, model: ModelInstance) -> None:
        while (work := self._work.get()) is not None:
            run_id, requests = work
            responder = _Responder(self._post, self._respond, run_id, self._gone)
            times, error = execute(model, self.name, requests, responder)
            self._post(self._finish, run_id, len(requests), times, error)

    def _finish(self, run_id: int, requests: int, times: ExecutionTimes | None, error: ServingError | None) -> None:
        self._done(run_id, times, error)
        if run_id not in self._runs:
            self._gone.forget(run_id, requests)

    def _post(self, function: Callable[..., None], *args: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    def _execute(self, run: Run, requests: Sequence[InferRequest]) -> None:
        self._work.put((run.id, requests))

    def cancel(self, run: Run, index: int) -> None:
        """See `Instance`."""
        self._gone.add(run.id, index)

    def pause(self, run: Run, index: int) -> None:
        """See `Instance`."""

    def resume(self, run: Run, index: int) -> None:
        """See `Instance`."""

    async def stop(self, grace: float) -> None:
        """See `Instance`. A model that does not end in time is left to its daemon thread."""
        if self._thread is None or not self._thread.is_alive():
            return
        self._work.put(None)
        try:
            await asyncio.wait_for(self._ended.wait(), grace)
        except TimeoutError:
            self._fail_all(unavailable(f"model instance '{self.name}' was unloaded"))


def load_timeout_message(spec: InstanceSpec, seconds: float) -> str:
    """What is said of a model that does not finish loading."""
    return (
        f"failed to load '{spec.config.name}' version {spec.version}: instance '{spec.name}' is still loading after "
        f"{seconds:g} s; if it needs longer, raise --model-load-timeout-secs or the parameter LOAD_TIMEOUT_SECONDS of "
        "its config"
    )


def _resolve(future: "asyncio.Future[ServingError | None]", error: ServingError | None) -> None:
    if not future.done():
        future.set_result(error)
