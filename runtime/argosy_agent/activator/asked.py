"""What a request asks for, whatever its protocol: how it is dealt with while no server has its model. Pure."""

from enum import StrEnum


class Asked(StrEnum):
    """HOLD: it waits for a server. READY: whether the model would answer, which it would, after a while.

    PASS: what only a server that runs can tell, and what is not worth starting one. LIVE, SERVER_READY, SERVER: of the
    activator itself. OTHER: of a whole server, which is no model's.
    """

    HOLD = "hold"
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
"""Why something is refused while no server runs."""
