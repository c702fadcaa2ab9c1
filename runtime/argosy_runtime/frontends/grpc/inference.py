"""ModelInfer: from the message's bytes to the data plane and back, by callback."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic_ns
from typing import Final

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.frontends import shared_memory
from argosy_runtime.frontends.forwarding import HeaderForwarding, refusal
from argosy_runtime.frontends.port import DataPlane, answer_view, of_endpoint, reported
from argosy_runtime.http2 import Stream
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.protocol.grpc import request as grpc_request
from argosy_runtime.protocol.grpc import wire as grpc_wire
from argosy_runtime.protocol.grpc.request import GrpcOptions
from argosy_runtime.protocol.grpc.response import ResponseEncoder
from argosy_runtime.protocol.grpc.templates import Decoded, RequestDecoder
from argosy_runtime.protocol.model_view import ModelView
from argosy_runtime.tensors import Data
from argosy_runtime.traces import TRACING

from .rpc.calls import UnaryCall
from .rpc.metadata import CallHead

_log: Final = logging.getLogger("argosy.grpc")
# A call and its stream refer to each other: without this a call's tensors would wait for the collector.
_NO_REQUEST: Final = InferRequest("", {})


class Inference:
    """What the calls that run models share: the data plane, the codecs with their caches, the headers to forward."""

    def __init__(self, plane: DataPlane, forward_pattern: str, compression: int = 0) -> None:
        self.plane = plane
        self.compression = compression
        """zlib's level for responses, 0 for no compression."""
        self.decoder = RequestDecoder()
        self.encoder = ResponseEncoder()
        self._forwarding = HeaderForwarding(forward_pattern)
        self._forwards: bool = self._forwarding.is_on

    def from_template(self, head: CallHead, data: bytes, start: int) -> Decoded | None:
        """Return a request that is made of a template; None where it has none, or headers become its parameters."""
        return None if self._forwards and self._chosen(head) else self.decoder.from_template(data, start)

    def forward_headers(self, request: InferRequest, head: CallHead) -> None:
        """Add the headers that are to be forwarded to the parameters. Raises INVALID_ARG for reserved names."""
        chosen = self._chosen(head)
        if not chosen:
            return
        reason = refusal(chosen)
        if reason:
            raise invalid(reason)
        # A template has the same parameters as the request that it was made of.
        request.parameters = {**request.parameters, **chosen}

    def _chosen(self, head: CallHead) -> dict[str, str]:
        """Return the headers that become parameters; equal heads are looked through once."""
        if head.forwarded is None:
            head.forwarded = self._forwarding.of(head.metadata())
        return head.forwarded

    def submit(self, decoded: Decoded, deliver: Deliver, single: bool = False) -> Submission:
        """Submit a request. Raises ServingError."""
        locations = decoded.options.locations
        if locations is None:
            return self.plane.submit(decoded.request, deliver, single)
        return shared_memory.submit(self.plane, decoded.request, locations, deliver, single)

    def encoded(self, response: InferResponse, request: InferRequest, options: GrpcOptions) -> list[Data]:
        """Return a ModelInferResponse. Raises ServingError where it cannot be encoded as requested."""
        return self.encoder.infer(response, options.classes, self.view(response, request, options))

    def view(self, response: InferResponse, request: InferRequest, options: GrpcOptions) -> Callable[[], ModelView]:
        """Return the lookup of the version that made a response for the encoder."""
        if not options.classes:
            return _no_view
        return answer_view(self.plane, response, request.model_name, request.model_version)


def _no_view() -> ModelView:
    raise AssertionError("only classification reads the model")


class InferCall(UnaryCall):
    """One ModelInfer."""

    __slots__ = ("_began", "_inference", "_options", "_request", "_submission")

    def __init__(self, stream: Stream, head: CallHead, loop: asyncio.AbstractEventLoop, inference: Inference) -> None:
        super().__init__(stream, head, loop)
        self._inference = inference
        self.compress(inference.compression)
        self._submission: Submission | None = None
        self._began = monotonic_ns() if TRACING.on else 0
        self._request: InferRequest
        self._options: GrpcOptions

    def message(self, data: bytes, start: int) -> None:
        inference = self._inference
        decoded = inference.from_template(self.head, data, start)
        if decoded is None:
            self._decode(data, start)
        else:
            self._submit(decoded)

    def _decode(self, data: bytes, start: int) -> None:
        inference = self._inference
        try:
            parsed = inference.decoder.parse(data, start)
        except ServingError as error:
            self.refuse(error)
            return
        try:
            decoded = inference.decoder.decode(parsed, data, start)
            inference.forward_headers(decoded.request, self.head)
        except ServingError as error:
            name, version = parsed.model_name, parsed.model_version
            self.refuse(reported(inference.plane, name, version, grpc_request.ENDPOINT, error))
        else:
            self._submit(decoded)

    def _submit(self, decoded: Decoded) -> None:
        self._request, self._options = decoded.request, decoded.options
        decoded.request.origin = self.head
        if TRACING.on:
            decoded.request.received = self._began
        try:
            self._submission = self._inference.submit(decoded, self._deliver, single=True)
        except ServingError as error:
            self.refuse(of_endpoint(error, grpc_request.ENDPOINT))

    def _deliver(self, response: InferResponse) -> None:
        self._submission = None
        self._answer_with(response)
        self._request = _NO_REQUEST

    def _answer_with(self, response: InferResponse) -> None:
        if response.error is not None:
            self.refuse(of_endpoint(response.error, grpc_request.ENDPOINT))
            return
        try:
            self._answer(response)
        except ServingError as error:
            self.refuse(error)
        except Exception as fault:
            _log.error("a response could not be encoded", exc_info=fault)
            self.failed(fault)

    def _answer(self, response: InferResponse) -> None:
        parts = self._inference.encoded(response, self._request, self._options)
        self.respond(parts, grpc_wire.total(parts))

    def cancelled(self) -> None:
        submission, self._submission = self._submission, None
        self._request = _NO_REQUEST
        if submission is not None:
            submission.cancel()
