"""One loaded Python model: `initialize`, `execute` in all its forms, `is_ready`, `finalize`."""

import asyncio
import gc
import inspect
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

from argosy_runtime.backends.contract import ExecutionTimes, InstanceSpec, Responder
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError, internal, unsupported
from argosy_runtime.failures.translation import failure
from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferRequest

from . import configuration
from .event_loop import EventLoop
from .loader import LoadedModel
from .pb_utils import context
from .pb_utils.errors import BrokenContractError, describe
from .pb_utils.reaper import reaper
from .pb_utils.request import ReceivedRequest
from .pb_utils.response import InferenceResponse
from .pb_utils.sender import ResponseChannel

# So many sets of requested outputs are cached.
_CAPACITY = 1024
# The parameter that lets coroutines of several batches run at a time.
_CONCURRENT = "MAX_CONCURRENT_BATCHES"
# What `execute` has returned where its coroutine goes on in the background.
_LATER = object()


class PythonInstance:
    """A `TritonPythonModel` with its context."""

    def __init__(self, spec: InstanceSpec, running: context.ModelContext, loaded: LoadedModel) -> None:
        self._spec = spec
        self._host = running.host
        self._loaded = loaded
        self._decoupled = spec.config.model_transaction_policy.decoupled
        self._outputs = tuple([output.name for output in spec.config.output])
        self._states = [state.output_name for state in spec.config.sequence_batching.state]
        self._version = str(spec.version)
        self._output_sets = FifoCache[tuple[str, ...], frozenset[str]](_CAPACITY)
        self._open_channel: Callable[[ReceivedRequest], ResponseChannel] = self._channel
        self._loop: EventLoop | None = None
        self._loop_lock = threading.Lock()
        self._most = _concurrent_batches(spec)
        self._context = running
        context.opened(self._context)
        try:
            self._model = self._initialized()
        except BaseException:
            context.closed(self._context)
            raise
        self._context.serving = True

    def _initialized(self) -> Any:
        with context.entered(self._context):
            model = self._loaded.model_class()
            if hasattr(model, "initialize"):
                model.initialize(arguments(self._spec))
        if self._most > 1 and not inspect.iscoroutinefunction(getattr(model, "execute", None)):
            self._host.log(
                "warning", f"{_CONCURRENT} is without effect: execute of '{self._spec.name}' is no coroutine"
            )
        return model

    @property
    def checks_readiness(self) -> bool:
        """Whether the model says itself whether it is ready."""
        return hasattr(self._model, "is_ready")

    def is_ready(self) -> bool:
        """Return the result of the model's own `is_ready`, True without one. Raises ServingError where that fails."""
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
        """Run `execute` on the batch. Return None where responses are still to come."""
        begun = time.monotonic_ns()
        batch: list[ReceivedRequest] = []
        for index, request in enumerate(requests):
            names = request.requested_outputs or self._outputs
            batch.append(ReceivedRequest(request, names, index, responder, self._open_channel))
        called = finished = time.monotonic_ns()
        try:
            returned = self._call(batch)
            finished = time.monotonic_ns()
            answered = returned is not _LATER and self._answer(batch, returned)
        except Exception as error:
            problem = self._failure(error)
            for received in batch:
                self._channel_of(received).fail(problem)
            if problem.device_error:
                # The server must learn of it, though every request may have had its last response before.
                raise problem from error
            answered = True
        if not answered:
            return None
        ended = time.monotonic_ns()
        return ExecutionTimes(called - begun, finished - called, ended - finished)

    def close(self) -> None:
        """Let the model finalize, and unload it. An exception of `finalize` is only logged, as in Triton."""
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
            self._open_channel = _closed  # the bound method is a reference cycle
            reaper.flush()
            context.closed(self._context)
            self._loaded.unload()
            if not self._context.alone:
                gc.collect()  # a module and its functions are a cycle, and their objects may be large

    def _channel(self, request: ReceivedRequest) -> ResponseChannel:
        """Return the channel of a request whose model answers by a sender, or not at all."""
        requested = self._requested(request)
        return ResponseChannel(
            request.message,
            request.index,
            request.responder,
            self._version,
            decoupled=self._decoupled,
            requested=requested,
        )

    def _channel_of(self, request: ReceivedRequest) -> ResponseChannel:
        if request.channel is None:
            request.channel = self._channel(request)
        return request.channel

    def _requested(self, request: ReceivedRequest) -> frozenset[str]:
        names = tuple(request.outputs)
        requested = self._output_sets.get(names)
        if requested is None:
            requested = frozenset([*names, *self._states])
            self._output_sets.put(names, requested)
        return requested

    def _call(self, batch: list[ReceivedRequest]) -> Any:
        if not hasattr(self._model, "execute"):
            raise BrokenContractError(f"Python model {self._spec.version_dir} does not implement `execute` method.")
        with context.entered(self._context):
            returned = self._model.execute(batch)
            if returned.__class__ is list or not asyncio.iscoroutine(returned):
                return returned
            if self._most == 1:
                return self._wait_for(returned)
            self._in_background(returned, batch)
            return _LATER

    def _wait_for(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._event_loop().submit(coroutine).result()

    def _in_background(self, coroutine: Coroutine[Any, Any, Any], batch: list[ReceivedRequest]) -> None:
        """Let a coroutine go on, and answer with what it returns; a decoupled model's returns nothing."""

        def done(finished: Future[Any]) -> None:
            if finished.cancelled():
                problem = internal(f"model instance '{self._spec.name}' is being unloaded")
            elif (error := finished.exception()) is not None:
                problem = self._failure(error)
            else:
                try:
                    with context.entered(self._context), self._host.corked():
                        self._answer(batch, None if self._decoupled else finished.result())
                    return
                except Exception as wrong:
                    problem = self._failure(wrong)
            for request in batch:
                self._channel_of(request).fail(problem)

        self._event_loop().begin(coroutine, done)

    def _event_loop(self) -> EventLoop:
        with self._loop_lock:  # `is_ready` may be called while `execute` is
            if self._loop is None:
                self._loop = EventLoop(self._spec.name, self._most)
            return self._loop

    def _failure(self, error: BaseException) -> ServingError:
        message = f"Failed to process the request(s) for model '{self._spec.name}', message: {describe(error)}"
        self._host.log("error", message)
        return failure(message, error)

    def _answer(self, batch: list[ReceivedRequest], returned: Any) -> bool:
        """Send what `execute` returned, if all of it is right; whether that answers them all."""
        responses = self._checked(batch, returned)
        for request, response in zip(batch, responses, strict=True):
            if response is not None and request.channel is not None:
                request.channel.admit(response, True)
        answered = True
        for request, response in zip(batch, responses, strict=True):
            if response is None:
                answered = self._without_response(request) and answered
            elif request.channel is None:
                message = response.to_message(request.message, self._version, self._requested(request), True)
                request.responder.send(request.index, message)
            else:
                request.channel.deliver(response, True)
        return answered

    def _without_response(self, request: ReceivedRequest) -> bool:
        """Handle a request without a returned response. Return whether it is answered.

        It is rescheduled, or its sender has answered it, or will.
        """
        if request.is_rescheduled:
            _reschedule(self._channel_of(request), request.index, request.responder)
            return True
        if request.channel is None:
            request.get_response_sender()  # whose end answers for a model that drops the request
        return self._channel_of(request).is_answered

    def _checked(self, batch: list[ReceivedRequest], returned: Any) -> list[InferenceResponse | None]:
        if returned is None:
            return [None] * len(batch)
        if self._decoupled:
            raise BrokenContractError(
                f"Python model '{self._spec.name}' is using the decoupled mode "
                "and the execute function must return None."
            )
        if not isinstance(returned, list):
            raise BrokenContractError(f"Expected a list in the execute return, found type '{type(returned)}'.")
        if len(returned) != len(batch):
            raise BrokenContractError(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                f"InferenceRequest(s) size is:{len(batch)}, and InferenceResponse(s) size "
                f"is:{len(returned)}\n"
            )
        for request, response in zip(batch, returned, strict=True):
            _check_response(request, response)
        return returned


def _concurrent_batches(spec: InstanceSpec) -> int:
    """Return how many batches may run at a time, where `execute` is a coroutine; 0 for any number.

    Raises ServingError for a parameter that is no number from 1 on.
    """
    parameters = Parameters(spec.config)
    if _CONCURRENT in parameters:
        return parameters.integer(_CONCURRENT, 1, minimum=1)
    return 0 if spec.config.model_transaction_policy.decoupled else 1


def arguments(spec: InstanceSpec) -> dict[str, str]:
    """Return the arguments of `initialize`: all strings, `model_config` as JSON."""
    return {
        "model_config": configuration.as_text(spec.config),
        "model_instance_kind": spec.kind.removeprefix("KIND_"),
        "model_instance_name": spec.name,
        "model_instance_device_id": str(spec.device_id),
        "model_repository": str(spec.model_dir),
        "model_version": str(spec.version),
        "model_name": spec.config.name,
    }


def _closed(request: ReceivedRequest) -> ResponseChannel:
    raise internal(f"model '{request.message.model_name}' is unloaded")


def _check_response(request: ReceivedRequest, response: Any) -> None:
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
    """Put a request back into its scheduler's queue (iterative sequences), where the responder has `reschedule`."""
    again = getattr(responder, "reschedule", None)
    if again is not None:
        channel.release()
        again(index)
    else:
        channel.fail(unsupported("this model's scheduler cannot reschedule a request"))
