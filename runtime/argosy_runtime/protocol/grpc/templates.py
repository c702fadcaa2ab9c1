"""ModelInferRequests that differ in id, sequence and data alone: the rest is decoded once, and found by its bytes."""

from typing import Final

from google.protobuf.message import DecodeError
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import ServingError, internal
from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferRequest, RequestTemplate
from argosy_runtime.modelconfig import ConfigError
from argosy_runtime.tensors import Data

from . import parameters as grpc_parameters
from . import request as grpc_request
from .request import UNPARSABLE, GrpcOptions, canonical_version
from .wire import Cut, cut

_CAPACITY: Final = 1024
_LARGEST_KEY: Final = 4096
_SEQUENCE: Final = frozenset(("sequence_id", "sequence_start", "sequence_end"))


class Decoded:
    """A request, and the options of its response."""

    __slots__ = ("options", "request")

    def __init__(self, request: InferRequest, options: GrpcOptions) -> None:
        self.request = request
        self.options = options


class RequestDecoder:
    """Decodes requests from the bytes of their messages.

    The second request with the same bytes, less id, sequence and data, leaves a template; those after it are made of
    that, and their data is not decoded. Requests that come only once leave none. Requests with all inputs in shared
    memory have templates of their own, which the caller gives their data. BYTES inputs and explicit contents are
    always decoded.
    """

    def __init__(self) -> None:
        self._templates = FifoCache[bytes, tuple[RequestTemplate, GrpcOptions]](_CAPACITY)
        # Apart from the others: a client may use any number of locations.
        self._located = FifoCache[bytes, tuple[RequestTemplate, GrpcOptions]](_CAPACITY)
        self._seen = FifoCache[bytes, None](_CAPACITY)
        # Sequences with their flags, by the bytes of their parameters; None for what is more than that.
        self._sequences = FifoCache[bytes, tuple[int | str, bool, bool] | None](_CAPACITY)

    def from_template(self, message: bytes, start: int = 0) -> Decoded | None:
        """Return the request made of its template; None where it has none and must be decoded."""
        parts = cut(message, start)
        if parts is None:
            return None
        cached = self._templates.get(parts.key) if parts.raw else self._located.get(parts.key)
        if cached is None:
            return None
        template, options = cached
        if parts.raw and not _fits(template, parts.raw):
            return None
        try:
            request_id = parts.id.decode()
        except UnicodeDecodeError:
            return None
        request = template.request(request_id, parts.raw or [b""] * len(template.inputs))
        if parts.sequence:
            sequence = self._sequence(parts.sequence)
            if sequence is None:
                return None
            request.join(sequence[0], sequence[1], sequence[2])
        return Decoded(request, options)

    def _sequence(self, parameters: bytes) -> tuple[int | str, bool, bool] | None:
        """Return id and flags of a sequence; None where there is more in the parameters, or something wrong."""
        if parameters in self._sequences:
            return self._sequences.get(parameters)
        sequence = _sequence_of(parameters)
        if len(parameters) <= _LARGEST_KEY:
            self._sequences.put(parameters, sequence)
        return sequence

    def parse(self, message: bytes, start: int = 0) -> pb.ModelInferRequest:
        """Parse the message by protobuf. Raises ServingError, INTERNAL where it is malformed."""
        try:
            parsed = pb.ModelInferRequest.FromString(message[start:])
        except DecodeError:
            raise internal(UNPARSABLE) from None
        if parsed.model_version:
            parsed.model_version = canonical_version(parsed.model_version)
        return parsed

    def decode(self, parsed: pb.ModelInferRequest, message: bytes, start: int = 0) -> Decoded:
        """Return the request that `parse` has made of a message. Raises ServingError."""
        request, options = grpc_request.decode(parsed)
        parts = cut(message, start)
        if parts is not None and len(parts.key) <= _LARGEST_KEY:
            self._add_template(parts, request, options)
        return Decoded(request, options)

    def _add_template(self, parts: Cut, request: InferRequest, options: GrpcOptions) -> None:
        if parts.key not in self._seen:
            self._seen.put(parts.key, None)
            return
        try:
            template = RequestTemplate(request)
        except ConfigError:
            # An unknown datatype of an input in shared memory, which is refused when that is read.
            return
        if parts.sequence:
            # The key has a part of it where a parameter is written in another way.
            if not _SEQUENCE.isdisjoint(pb.ModelInferRequest.FromString(parts.key).parameters):
                return
            template.leave_sequence()
        if not parts.raw:
            if options.locations is not None and options.locations.hold(template.inputs):
                self._located.put(parts.key, (template, options))
        elif _fits(template, parts.raw):
            self._templates.put(parts.key, (template, options))


def _sequence_of(parameters: bytes) -> tuple[int | str, bool, bool] | None:
    of_sequence = InferRequest("", {})
    try:
        parsed = pb.ModelInferRequest.FromString(parameters)
        grpc_parameters.apply(parsed.parameters, of_sequence)
    except (DecodeError, ServingError):
        return None
    if not parsed.parameters.keys() <= _SEQUENCE:
        return None
    return of_sequence.sequence_id, of_sequence.sequence_start, of_sequence.sequence_end


def _fits(template: RequestTemplate, raw: list[Data]) -> bool:
    """Return whether number and sizes of the data are those of the template's inputs; False where one is BYTES."""
    if len(raw) != len(template.inputs):
        return False
    return all(spec.size == len(data) for spec, data in zip(template.inputs, raw, strict=True))
