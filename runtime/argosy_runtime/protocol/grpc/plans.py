"""ModelInferRequests that are like earlier ones: decoded once, then looked up by their bytes."""

from typing import Any, Final

from google.protobuf.message import DecodeError
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import invalid
from argosy_runtime.messages import InferRequest, RequestPlan
from argosy_runtime.protocol.model_version import canonical
from argosy_runtime.tensors import Data

from . import request as grpc_request
from .request import GrpcOptions
from .wire import Cut, cut

_REMEMBERED: Final = 1024
_LARGEST_KEY: Final = 4096


class Decoded:
    """A request, how its client wants the response; `known` says that it was made of a plan."""

    __slots__ = ("options", "request")

    def __init__(self, request: InferRequest, options: GrpcOptions) -> None:
        self.request = request
        self.options = options


class RequestDecoder:
    """Requests from the bytes of their messages.

    A request whose like has been seen before is made of a plan, and its data is not looked at; of others a plan is
    made once their like has come twice, so that requests that never come again leave no trace. BYTES inputs and
    explicit contents are always decoded.
    """

    def __init__(self) -> None:
        self._plans: dict[bytes, tuple[RequestPlan, GrpcOptions]] = {}
        self._seen: dict[bytes, None] = {}

    def planned(self, message: bytes, start: int = 0) -> Decoded | None:
        """Return the request, where it is like an earlier one; None where it must be decoded."""
        parts = cut(message, start)
        if parts is None:
            return None
        known = self._plans.get(parts.key)
        if known is None or not _fits(known[0], parts.raw):
            return None
        try:
            request_id = parts.id.decode()
        except UnicodeDecodeError:
            return None
        return Decoded(known[0].request(request_id, parts.raw), known[1])

    def parse(self, message: bytes, start: int = 0) -> pb.ModelInferRequest:
        """Return the message as protobuf has it. Raises INVALID_ARG where it is none."""
        try:
            parsed = pb.ModelInferRequest.FromString(message[start:])
        except DecodeError as error:
            raise invalid(f"the request is no ModelInferRequest: {error}") from None
        if parsed.model_version:
            parsed.model_version = canonical(parsed.model_version)
        return parsed

    def decode(self, parsed: pb.ModelInferRequest, message: bytes, start: int = 0) -> Decoded:
        """Return the request that `parse` has made of a message. Raises ServingError."""
        request, options = grpc_request.decode(parsed)
        parts = cut(message, start)
        if parts is not None and len(parts.key) <= _LARGEST_KEY:
            self._learn(parts, request, options)
        return Decoded(request, options)

    def _learn(self, parts: Cut, request: InferRequest, options: GrpcOptions) -> None:
        if parts.key not in self._seen:
            _bound(self._seen)
            self._seen[parts.key] = None
            return
        plan = RequestPlan(request)
        if _fits(plan, parts.raw):
            _bound(self._plans)
            self._plans[parts.key] = (plan, options)


def _fits(plan: RequestPlan, raw: list[Data]) -> bool:
    """Return whether these are the data of the plan's inputs, by their number and sizes; never where one is BYTES."""
    if len(raw) != len(plan.inputs):
        return False
    return all(spec.size == len(data) for spec, data in zip(plan.inputs, raw, strict=True))


def _bound(known: dict[bytes, Any]) -> None:
    """Forget the oldest where there are too many."""
    if len(known) >= _REMEMBERED:
        del known[next(iter(known))]
