"""One ModelStreamInfer call: many requests at a time, their responses on one stream."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.frontends.port import named_fault
from argosy_runtime.http2 import Stream
from argosy_runtime.messages import InferRequest, InferResponse, Submission
from argosy_runtime.protocol.grpc import response as grpc_response
from argosy_runtime.protocol.grpc import wire as grpc_wire
from argosy_runtime.protocol.grpc.request import GrpcOptions
from argosy_runtime.protocol.grpc.templates import Decoded
from argosy_runtime.tensors import Data

from .inference import Inference
from .rpc.calls import StreamingCall
from .rpc.metadata import CallHead
from .rpc.status import Status

_log: Final = logging.getLogger("argosy.grpc")
ERROR_CLOSES_STREAM: Final = "triton_grpc_error"
_ENDS: Final = "GRPC server is shutting down and has stopped accepting new requests."
# Requests of one stream that may be open; further ones wait at the client.
MAX_OPEN: Final = 1024


def _unexpected(fault: Exception) -> ServingError:
    """Log an error of this server, and return it as that of one request: the others of its stream go on."""
    _log.error("a request of a stream failed unexpectedly", exc_info=fault)
    return ServingError(ErrorKind.UNKNOWN, f"Unexpected {type(fault)}: {fault}")


class _StreamedRequest:
    """One request of the stream. With `in_turn` its responses wait until all before it are answered."""

    __slots__ = ("_call", "_deferred", "failure", "in_turn", "options", "over", "request", "submission")

    def __init__(self, call: "StreamCall", request: InferRequest, options: GrpcOptions, in_turn: bool) -> None:
        self._call = call
        self._deferred: list[list[Data]] = []
        self.request = request
        self.options = options
        self.in_turn = in_turn
        self.over = False
        self.failure: ServingError | None = None
        """The error that ends the stream in the request's turn."""
        self.submission: Submission | None = None

    def deliver(self, response: InferResponse) -> None:
        if response.final:
            self.over = True
            self.submission = None
        try:
            self._call.delivered(self, response)
        except Exception as error:
            _log.error("a response could not be encoded", exc_info=error)
            self._call.failed(error)

    def defer(self, parts: list[Data]) -> None:
        """Keep a response until the request's turn."""
        self._deferred.append(parts)

    def released(self) -> list[list[Data]]:
        """Remove and return the deferred responses."""
        responses, self._deferred = self._deferred, []
        return responses


class StreamCall(StreamingCall):
    """Runs the requests of one stream at the same time.

    Requests to models that are not decoupled are answered in their order, others as responses come. Where the client
    asks for it (`triton_grpc_error`), the first error ends the stream as its status.
    """

    __slots__ = ("_concluding", "_errors_close", "_inference", "_loading", "_open", "_paused", "_requested", "_turns")

    def __init__(self, stream: Stream, head: CallHead, loop: asyncio.AbstractEventLoop, inference: Inference) -> None:
        super().__init__(stream, head, loop)
        self._inference = inference
        self.compress(inference.compression)
        self._errors_close = head.header(ERROR_CLOSES_STREAM) == "true"
        self._open: dict[_StreamedRequest, None] = {}
        self._turns: deque[_StreamedRequest] = deque()
        self._paused = False
        self._loading = False
        """Whether a request waits for its model to be loaded, and later ones for that request."""
        self._requested = True
        self._concluding = False

    # Requests

    def may_take(self) -> bool:
        free = not self._paused and not self._loading
        return free and not self._concluding and len(self._open) < MAX_OPEN

    def no_more(self) -> None:
        self._requested = False
        self._finish_if_answered()

    def message(self, data: bytes) -> None:
        try:
            decoded = self._inference.from_template(self.head, data, 0)
        except Exception as fault:
            self._refuse(self._add(Decoded(InferRequest("", {}), GrpcOptions()), in_turn=True), _unexpected(fault))
            return
        if decoded is None:
            self._decode(data)
        else:
            self._begin(decoded)

    def _decode(self, data: bytes, awaits_load: bool = True) -> None:
        """Decode a request without a template, and begin it. An error is sent in the request's turn."""
        inference = self._inference
        request = InferRequest("", {})
        try:
            parsed = inference.decoder.parse(data)
            request.id = parsed.id
            request.model_name, request.model_version = parsed.model_name, parsed.model_version
            inference.plane.model_config(parsed.model_name, parsed.model_version)
            decoded = inference.decoder.decode(parsed, data)
            inference.forward_headers(decoded.request, self.head)
        except ServingError as error:
            if not (awaits_load and self._waits_for_load(request, lambda: self._decode(data, False))):
                fault = named_fault(inference.plane, request.model_name, request.model_version, error)
                self._refuse(self._add(Decoded(request, GrpcOptions()), in_turn=True), fault)
        except Exception as unexpected:
            self._refuse(self._add(Decoded(request, GrpcOptions()), in_turn=True), _unexpected(unexpected))
        else:
            self._begin(decoded, awaits_load)

    def _begin(self, decoded: Decoded, awaits_load: bool = True) -> None:
        request, plane = decoded.request, self._inference.plane
        request.origin = self.head
        entry: _StreamedRequest | None = None
        try:
            config = plane.model_config(request.model_name, request.model_version)
            entry = self._add(decoded, not config.model_transaction_policy.decoupled)
            submission = self._inference.submit(decoded, entry.deliver)
        except ServingError as error:
            waits = entry is None and awaits_load
            if not (waits and self._waits_for_load(request, lambda: self._begin(decoded, False))):
                self._refuse(entry or self._add(decoded, in_turn=True), error)
            return
        except Exception as fault:
            self._refuse(entry or self._add(decoded, in_turn=True), _unexpected(fault))
            return
        if not entry.over:
            entry.submission = submission
            if self._paused:
                submission.pause()

    def _waits_for_load(self, request: InferRequest, begin: Callable[[], None]) -> bool:
        """Return whether a request waits for its model to be loaded; `begin` it once that serves."""

        def loaded(error: ServingError | None) -> None:
            self._loading = False
            if self.is_over or self.stream.closed:
                return
            if error is None:
                begin()
            else:
                self._refuse(self._add(Decoded(request, GrpcOptions()), in_turn=True), error)
            self.take()
            self._finish_if_answered()

        self._loading = self._inference.plane.when_loaded(request.model_name, request.model_version, loaded)
        return self._loading

    def _add(self, decoded: Decoded, in_turn: bool) -> _StreamedRequest:
        entry = _StreamedRequest(self, decoded.request, decoded.options, in_turn)
        self._open[entry] = None
        if in_turn:
            self._turns.append(entry)
        return entry

    def _refuse(self, entry: _StreamedRequest, error: ServingError) -> None:
        entry.over = True
        if self._errors_close:
            self._end_with_error(entry, error)
            return
        refusal = grpc_response.encode_refusal(entry.request.id, error.message)
        self._answer(entry, [refusal.SerializeToString()])

    # Responses

    def delivered(self, entry: _StreamedRequest, response: InferResponse) -> None:
        """Send a response to one of the requests, or defer it."""
        if self._errors_close and response.error is not None:
            self._end_with_error(entry, response.error)
            return
        if entry.in_turn:
            sends = not response.is_empty
            # The one response is marked as final, whatever comes after it.
            response.final = True
        else:
            sends = not response.is_empty or entry.options.wants_empty_final
        self._answer(entry, self._encoded(entry, response) if sends else None)

    def _encoded(self, entry: _StreamedRequest, response: InferResponse) -> list[Data]:
        inference, request = self._inference, entry.request
        try:
            view = inference.view(response, request, entry.options)
            return inference.encoder.stream(request, response, entry.options.classes, view)
        except ServingError as error:
            refusal = error
        except Exception as fault:
            refusal = _unexpected(fault)
        return [grpc_response.encode_refusal(request.id, refusal.message).SerializeToString()]

    def _answer(self, entry: _StreamedRequest, parts: list[Data] | None) -> None:
        """Send a response, or defer it to its turn. Go on with the requests and responses that waited for it."""
        if not entry.in_turn:
            if parts is not None:
                self._send(parts)
            if entry.over:
                self._open.pop(entry, None)
        else:
            if parts is not None:
                entry.defer(parts)
            self._send_in_turn()
        self.take()
        self._finish_if_answered()

    def _send_in_turn(self) -> None:
        turns = self._turns
        while turns and not self.stream.closed:
            entry = turns[0]
            for parts in entry.released():
                self._send(parts)
            if entry.failure is not None:
                self._close(entry.failure)
                return
            if not entry.over:
                return
            turns.popleft()
            del self._open[entry]

    def _send(self, parts: list[Data]) -> None:
        if not self.send(parts, grpc_wire.total(parts)) and not self._paused:
            self._paused = True
            for entry in self._open:
                if entry.submission is not None:
                    entry.submission.pause()

    def writable(self) -> None:
        if self._paused:
            self._paused = False
            for entry in tuple(self._open):
                if entry.submission is not None:
                    entry.submission.resume()
            self.take()

    # The end

    def conclude(self) -> None:
        """Take no more requests. A client that has not ended its side learns by the status that it must go on on
        another stream, and that requests without an answer were not begun.
        """
        self._concluding = True
        self._finish_if_answered()

    def _finish_if_answered(self) -> None:
        if self._open or self._loading or self.is_over:
            return
        if not self._requested:
            self.finish()
        elif self._concluding:
            self.fail(Status.UNAVAILABLE, _ENDS)

    def _end_with_error(self, entry: _StreamedRequest, error: ServingError) -> None:
        """End the stream with the error of a request, in its turn if it has one: answers before it are sent."""
        if entry.in_turn:
            entry.over = True
            entry.failure = error
            self._send_in_turn()
        else:
            self._close(error)

    def _close(self, error: ServingError) -> None:
        self.refuse(error)
        self.cancelled()

    def cancelled(self) -> None:
        submissions = [entry.submission for entry in self._open if entry.submission is not None]
        self._open.clear()
        self._turns.clear()
        for submission in submissions:
            submission.cancel()
