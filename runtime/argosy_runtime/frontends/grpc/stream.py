"""One ModelStreamInfer call: many requests at a time, their responses on one stream."""

import asyncio
import logging
from collections import deque
from typing import Final

from argosy_runtime.errors import ServingError
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

_log: Final = logging.getLogger("argosy.grpc")
ERROR_CLOSES_STREAM: Final = "triton_grpc_error"
# Requests of one stream that may be under way; the next ones wait at the client.
MAX_OPEN: Final = 1024


class _Asked:
    """One request of the stream. With `in_turn` its responses wait until all before it are answered."""

    __slots__ = ("_call", "_held", "in_turn", "options", "over", "request", "submission")

    def __init__(self, call: "StreamCall", request: InferRequest, options: GrpcOptions, in_turn: bool) -> None:
        self._call = call
        self._held: list[list[Data]] = []
        self.request = request
        self.options = options
        self.in_turn = in_turn
        self.over = False
        self.submission: Submission | None = None

    def deliver(self, response: InferResponse) -> None:
        """See `Deliver`."""
        if response.final:
            self.over = True
            self.submission = None
        try:
            self._call.delivered(self, response)
        except Exception as error:
            _log.error("a response could not be encoded", exc_info=error)
            self._call.failed(error)

    def hold(self, parts: list[Data]) -> None:
        """Keep a response until its turn."""
        self._held.append(parts)

    def released(self) -> list[list[Data]]:
        """Release the responses kept so far."""
        held, self._held = self._held, []
        return held


class StreamCall(StreamingCall):
    """Runs the requests of one stream at the same time.

    Requests to models that are not decoupled are answered in their order, others as responses come. Where the client
    asks for it (`triton_grpc_error`), the first error ends the stream as its status.
    """

    __slots__ = ("_errors_close", "_inference", "_open", "_paused", "_requested", "_turns")

    def __init__(self, stream: Stream, head: CallHead, loop: asyncio.AbstractEventLoop, inference: Inference) -> None:
        super().__init__(stream, head, loop)
        self._inference = inference
        self.compress(inference.compression)
        self._errors_close = head.value(ERROR_CLOSES_STREAM) == "true"
        self._open: dict[_Asked, None] = {}
        self._turns: deque[_Asked] = deque()
        self._paused = False
        self._requested = True

    # Requests

    def may_take(self) -> bool:
        """See `StreamingCall`."""
        return not self._paused and len(self._open) < MAX_OPEN

    def no_more(self) -> None:
        """See `StreamingCall`."""
        self._requested = False
        self._finish_if_answered()

    def message(self, data: bytes) -> None:
        """See `StreamingCall`."""
        inference = self._inference
        decoded = inference.from_template(self.head, data, 0)
        if decoded is None:
            self._decode(data)
        else:
            self._begin(decoded)

    def _decode(self, data: bytes) -> None:
        """A request that is like no other; what is wrong with it is told in its turn, if it has one."""
        inference = self._inference
        request = InferRequest("", {})
        try:
            parsed = inference.decoder.parse(data)
            request.id = parsed.id
            inference.plane.model_config(parsed.model_name, parsed.model_version)
            decoded = inference.decoder.decode(parsed, data)
            inference.forward_headers(decoded.request, self.head)
        except ServingError as error:
            self._refuse(self._asked(Decoded(request, GrpcOptions()), in_turn=True), error)
        else:
            self._begin(decoded)

    def _begin(self, decoded: Decoded) -> None:
        request, plane = decoded.request, self._inference.plane
        asked: _Asked | None = None
        try:
            config = plane.model_config(request.model_name, request.model_version)
            asked = self._asked(decoded, not config.model_transaction_policy.decoupled)
            submission = plane.submit(request, asked.deliver)
        except ServingError as error:
            self._refuse(asked or self._asked(decoded, in_turn=True), error)
            return
        if not asked.over:
            asked.submission = submission
            if self._paused:
                submission.pause()

    def _asked(self, decoded: Decoded, in_turn: bool) -> _Asked:
        asked = _Asked(self, decoded.request, decoded.options, in_turn)
        self._open[asked] = None
        if in_turn:
            self._turns.append(asked)
        return asked

    def _refuse(self, asked: _Asked, error: ServingError) -> None:
        asked.over = True
        if self._errors_close:
            self._close(error)
            return
        refusal = grpc_response.encode_refusal(asked.request.id, error.message)
        self._answer(asked, [refusal.SerializeToString()])

    # Responses

    def delivered(self, asked: _Asked, response: InferResponse) -> None:
        """A response to one of the requests."""
        if self._errors_close and response.error is not None:
            self._close(response.error)
            return
        if asked.in_turn:
            wanted = not response.is_empty
            # The one response says that it is final, whatever comes after it.
            response.final = True
        else:
            wanted = not response.is_empty or asked.options.wants_empty_final
        self._answer(asked, self._encoded(asked, response) if wanted else None)

    def _encoded(self, asked: _Asked, response: InferResponse) -> list[Data]:
        inference, request = self._inference, asked.request
        view = inference.view(request, asked.options)
        try:
            return inference.encoder.stream(request, response, asked.options.classes, view)
        except ServingError as error:
            return [grpc_response.encode_refusal(request.id, error.message).SerializeToString()]

    def _answer(self, asked: _Asked, parts: list[Data] | None) -> None:
        """Send a response, or keep it for its turn; go on with what this lets go on."""
        if not asked.in_turn:
            if parts is not None:
                self._send(parts)
            if asked.over:
                self._open.pop(asked, None)
        else:
            if parts is not None:
                asked.hold(parts)
            self._send_in_turn()
        self.take()
        self._finish_if_answered()

    def _send_in_turn(self) -> None:
        turns = self._turns
        while turns and not self.stream.closed:
            asked = turns[0]
            for parts in asked.released():
                self._send(parts)
            if not asked.over:
                return
            turns.popleft()
            del self._open[asked]

    def _send(self, parts: list[Data]) -> None:
        if not self.send(parts, grpc_wire.total(parts)) and not self._paused:
            self._paused = True
            for asked in self._open:
                if asked.submission is not None:
                    asked.submission.pause()

    def writable(self) -> None:
        """See `Receiver`."""
        if self._paused:
            self._paused = False
            for asked in tuple(self._open):
                if asked.submission is not None:
                    asked.submission.resume()
            self.take()

    # The end

    def _finish_if_answered(self) -> None:
        if not self._requested and not self._open:
            self.finish()

    def _close(self, error: ServingError) -> None:
        self.refuse(error)
        self.cancelled()

    def cancelled(self) -> None:
        """See `Call`."""
        submissions = [asked.submission for asked in self._open if asked.submission is not None]
        self._open.clear()
        self._turns.clear()
        for submission in submissions:
            submission.cancel()
