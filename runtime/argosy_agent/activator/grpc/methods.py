"""The kinds of gRPC methods while no server has the model. Pure."""

from argosy_agent.activator.request_kind import RequestKind

from .messages import enum_message, name_message

_V2 = "/inference.GRPCInferenceService/"
HEALTH_CHECK, HEALTH_WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
_METHODS = {
    f"{_V2}ModelInfer": RequestKind.QUEUE,
    f"{_V2}ModelStreamInfer": RequestKind.QUEUE,
    f"{_V2}ModelMetadata": RequestKind.QUEUE,
    f"{_V2}ModelConfig": RequestKind.QUEUE,
    f"{_V2}ModelReady": RequestKind.READY,
    f"{_V2}ModelStatistics": RequestKind.PASS,
    f"{_V2}ServerLive": RequestKind.LIVE,
    f"{_V2}ServerReady": RequestKind.SERVER_READY,
    f"{_V2}ServerMetadata": RequestKind.SERVER,
    HEALTH_CHECK: RequestKind.SERVER_READY,
    HEALTH_WATCH: RequestKind.SERVER_READY,
}
OWN = {
    RequestKind.LIVE: enum_message(1),
    RequestKind.SERVER_READY: enum_message(1),
    RequestKind.READY: enum_message(1),
    RequestKind.SERVER: name_message("argosy"),
}
"""The answers of the activator itself."""
NOT_READY = {HEALTH_CHECK: enum_message(2), HEALTH_WATCH: enum_message(2)}
"""The answers before the members are known: NOT_SERVING; for other methods false, an empty message."""


def kind_of(method: str) -> RequestKind:
    """Return the kind of calls of a method."""
    return _METHODS.get(method, RequestKind.OTHER)
