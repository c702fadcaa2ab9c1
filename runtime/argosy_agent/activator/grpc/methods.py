"""What each method asks for while no server has the model. Pure."""

from argosy_agent.activator.asked import Asked

from .messages import enum_message, name_message

_V2 = "/inference.GRPCInferenceService/"
HEALTH_CHECK, HEALTH_WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
_METHODS = {
    f"{_V2}ModelInfer": Asked.HOLD,
    f"{_V2}ModelStreamInfer": Asked.HOLD,
    f"{_V2}ModelMetadata": Asked.HOLD,
    f"{_V2}ModelConfig": Asked.HOLD,
    f"{_V2}ModelReady": Asked.READY,
    f"{_V2}ModelStatistics": Asked.PASS,
    f"{_V2}ServerLive": Asked.LIVE,
    f"{_V2}ServerReady": Asked.SERVER_READY,
    f"{_V2}ServerMetadata": Asked.SERVER,
    HEALTH_CHECK: Asked.SERVER_READY,
    HEALTH_WATCH: Asked.SERVER_READY,
}
OWN = {
    Asked.LIVE: enum_message(1),
    Asked.SERVER_READY: enum_message(1),
    Asked.READY: enum_message(1),
    Asked.SERVER: name_message("argosy"),
}
"""What is answered here."""
NOT_READY = {HEALTH_CHECK: enum_message(2), HEALTH_WATCH: enum_message(2)}
"""What is answered in place of it while nobody knows yet what is served: NOT_SERVING; elsewhere false, an empty one."""


def asked(method: str) -> Asked:
    """Return what a call of this method is dealt with as."""
    return _METHODS.get(method, Asked.OTHER)
