"""One loaded Python model: `initialize`, `execute` in all its forms, `is_ready`, `finalize`."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, runtime_checkable

from argosy_runtime.backends.contract import ExecutionTimes, Host, InstanceSpec, Responder
from argosy_runtime.errors import ServingError, internal, unsupported
from argosy_runtime.messages import InferRequest

from . import configuration, context
from .errors import BrokenContractError
from .failure import describe
from .inference import InferenceRequest, InferenceResponse
from .loader import LoadedModel
from .sender import InferenceResponseSender, Reaper, ResponseChannel


@runtime_checkable
class ReschedulingResponder(Protocol):
    """A responder that can put a request back into its scheduler's queue (iterative sequences)."""

    def reschedule(self, index: int) -> None:
        """Request `index` comes again; it gets no response from this batch."""


class PythonInstance:
    """A `TritonPythonModel`, and what the server needs to run it."""

    def __init__(self, spec: InstanceSpec, host: Host, loaded: LoadedModel) -> None:
        self._spec = spec
        self._host = host
        self._loaded = loaded
        self._decoupled = spec.config.model_transaction_policy.decoupled
        self._outputs = [output.name for output in spec.config.output]
        self._loop: _EventLoop | None = None
        self._context = context.ModelContext(host, spec.version_dir)
        context.opened(self._context)
        try:
            self._model = self._initialized()
        except BaseException:
            context.closed(self._context)
            raise
        self._reaper = Reaper(spec.name)
        self._context.serving = True

    def _initialized(self) -> Any:
        with context.entered(self._context):
            model = self._loaded.model_class()
            if hasattr(model, "initialize"):
                model.initialize(arguments(self._spec))
        return model

    def is_ready(self) -> bool:
        """The model's own opinion, where it has one. Raises ServingError where that fails."""
        if not hasattr(self._model, "is_ready"):
            return True
        try:
            with context.entered(self._context):
                result = self._model.is_ready()
                ready = self._wait_for(result) if asyncio.iscoroutine(result) else result
        except Exception as error:
            raise internal(describe(error)) from error
        if not isinstance(ready, bool):
            raise internal("is_ready() must return a boolean value")
        return ready

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes | None:
        """Run `execute` on the batch. None where responses are still to come."""
        begun = time.monotonic_ns()
        channels = [self._channel(request, index, responder) for index, request in enumerate(requests)]
        given = [self._received(request, channel) for request, channel in zip(requests, channels, strict=True)]
        called = finished = time.monotonic_ns()
        try:
            returned = self._call(given, channels)
            finished = time.monotonic_ns()
            self._answer(given, channels, returned, responder)
        except Exception as error:
            failure = self._failure(error)
            for channel in channels:
                channel.fail(failure)
        if not all(channel.is_answered for channel in channels):
            return None
        ended = time.monotonic_ns()
        return ExecutionTimes(called - begun, finished - called, ended - finished)

    def close(self) -> None:
        """Let the model finalize, and forget it. What `finalize` raises is only logged, as in Triton."""
        self._context.serving = False
        if self._loop is not None:
            self._loop.stop()
        try:
            if hasattr(self._model, "finalize"):
                with context.entered(self._context):
                    self._model.finalize()
        except Exception as error:
            self._host.log("info", describe(error))
        finally:
            self._model = None
            self._reaper.close()
            context.closed(self._context)
            self._loaded.unload()

    def _channel(self, request: InferRequest, index: int, responder: Responder) -> ResponseChannel:
        wanted = frozenset(request.requested_outputs or self._outputs)
        version = str(self._spec.version)
        return ResponseChannel(request, index, responder, version, decoupled=self._decoupled, wanted=wanted)

    def _received(self, request: InferRequest, channel: ResponseChannel) -> InferenceRequest:
        names = list(request.requested_outputs) or self._outputs
        return InferenceRequest.received(request, names, InferenceResponseSender(channel, self._reaper))

    def _call(self, given: list[InferenceRequest], channels: list[ResponseChannel]) -> Any:
        if not hasattr(self._model, "execute"):
            raise BrokenContractError(f"Python model {self._spec.version_dir} does not implement `execute` method.")
        with context.entered(self._context):
            returned = self._model.execute(given)
            if not asyncio.iscoroutine(returned):
                return returned
            if not self._decoupled:
                return self._wait_for(returned)
            self._in_background(returned, channels)
            return None

    def _wait_for(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._event_loop().submit(coroutine).result()

    def _in_background(self, coroutine: Coroutine[Any, Any, Any], channels: list[ResponseChannel]) -> None:
        future = self._event_loop().submit(coroutine)

        def done(finished: Future[Any]) -> None:
            if finished.cancelled():
                failure = internal(f"model instance '{self._spec.name}' is being unloaded")
            elif (error := finished.exception()) is not None:
                failure = self._failure(error)
            else:
                return
            for channel in channels:
                channel.fail(failure)

        future.add_done_callback(done)

    def _event_loop(self) -> "_EventLoop":
        if self._loop is None:
            self._loop = _EventLoop(self._spec.name)
        return self._loop

    def _failure(self, error: BaseException) -> ServingError:
        message = f"Failed to process the request(s) for model '{self._spec.name}', message: {describe(error)}"
        self._host.log("error", message)
        return internal(message)

    def _answer(
        self,
        given: list[InferenceRequest],
        channels: list[ResponseChannel],
        returned: Any,
        responder: Responder,
    ) -> None:
        """Send what `execute` returned: nothing before all of it is known to be right."""
        responses = self._checked(given, returned)
        for response, channel in zip(responses, channels, strict=True):
            if response is not None:
                channel.admit(response, True)
        for index, (request, response, channel) in enumerate(zip(given, responses, channels, strict=True)):
            if response is not None:
                channel.deliver(response, True)
            elif request.is_rescheduled:
                _reschedule(channel, index, responder)

    def _checked(self, given: list[InferenceRequest], returned: Any) -> list[InferenceResponse | None]:
        if returned is None:
            return [None] * len(given)
        if self._decoupled:
            raise BrokenContractError(
                f"Python model '{self._spec.name}' is using the decoupled mode "
                "and the execute function must return None."
            )
        if not isinstance(returned, list):
            raise BrokenContractError(f"Expected a list in the execute return, found type '{type(returned)}'.")
        if len(returned) != len(given):
            raise BrokenContractError(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                f"InferenceRequest(s) size is:{len(given)}, and InferenceResponse(s) size "
                f"is:{len(returned)}\n"
            )
        for request, response in zip(given, returned, strict=True):
            _check_response(request, response)
        return returned


def arguments(spec: InstanceSpec) -> dict[str, str]:
    """What `initialize` is given: all strings, `model_config` as JSON."""
    return {
        "model_config": configuration.as_text(spec.config),
        "model_instance_kind": spec.kind.removeprefix("KIND_"),
        "model_instance_name": spec.name,
        "model_instance_device_id": str(spec.device_id),
        "model_repository": str(spec.model_dir),
        "model_version": str(spec.version),
        "model_name": spec.config.name,
    }


def _check_response(request: InferenceRequest, response: Any) -> None:
    if response is None:
        return
    if request.is_rescheduled:
        raise BrokenContractError(
            "Expected a None object in the execute function return list for reschduled request, "
            f"found type '{type(response)}'."
        )
    if not isinstance(response, InferenceResponse):
        raise BrokenContractError(
            "Expected an 'InferenceResponse' object in the execute function return list, "
            f"found type '{type(response)}'."
        )


def _reschedule(channel: ResponseChannel, index: int, responder: Responder) -> None:
    if isinstance(responder, ReschedulingResponder):
        channel.release()
        responder.reschedule(index)
    else:
        channel.fail(unsupported("this model's scheduler cannot reschedule a request"))


class _EventLoop:
    """An asyncio loop on a thread of its own, for models whose `execute` is a coroutine."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"{name}-asyncio", daemon=True)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run it, in the caller's context."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def stop(self) -> None:
        """Cancel what still runs, wait for it, and end the thread."""
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel_all(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()
