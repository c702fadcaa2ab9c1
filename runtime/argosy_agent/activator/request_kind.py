"""The kinds of requests, in either protocol, by how they are handled while no server has the model. Pure."""

from enum import StrEnum


class RequestKind(StrEnum):
    """The kind of a request.

    QUEUE: it waits for a server. READY: the readiness of the model, which is answered here: it would answer after a
    while. PASS: only a running server can answer it, and it is not worth starting one. LIVE, SERVER_READY, SERVER:
    about the activator itself. OTHER: about a server, not about a model.
    """

    QUEUE = "queue"
    READY = "ready"
    PASS = "pass"
    LIVE = "live"
    SERVER_READY = "server ready"
    SERVER = "server"
    OTHER = "other"


NO_SERVER = (
    "no server is asked for this: the models that are reached here run nowhere now, and only a request for inference, "
    "metadata or configuration of one of them starts a server"
)
"""The reason of a refusal while no server runs."""
