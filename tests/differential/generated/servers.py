"""The two servers that generated requests are for. The real Triton is started again where it ends."""

import http.client
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.differential.generated.comparison import comparable
from tests.differential.grpc_cases import GrpcCase, answer
from tests.differential.http_calls import Call, send
from tests.differential.normalise import normalised
from tests.differential.running import MOST_ENDS, Running
from tests.peers.server import Server

Json = Any


class Servers:
    """Both servers, each started at its first request. `compared` counts answers of both by kind of request."""

    def __init__(self, start: Callable[[str], Server]) -> None:
        self._running = Running(start)
        self.compared: Counter[str] = Counter()
        self.ended_by: list[Call | GrpcCase] = []
        """The requests that the real Triton left without an answer."""

    def argosy(self, request: Call | GrpcCase) -> Json:
        """Return Argosy's answer."""
        return _requested(self._running.server("argosy"), request)

    def triton(self, request: Call | GrpcCase) -> Json | None:
        """Return the real Triton's answer; None where it ends or hangs.

        Where it did so too often, nothing more is compared.
        """
        if self._running.ends >= MOST_ENDS:
            return None
        server = self._running.server("triton")
        try:
            reply = _requested(server, request)
        except (OSError, http.client.HTTPException):
            reply = None
        if reply is None or _lost(reply, server):
            self.ended_by.append(request)
            self._running.restart_next("triton")
            return None
        return reply

    def stop(self) -> None:
        """Stop both."""
        self._running.stop()


def _requested(server: Server, request: Call | GrpcCase) -> Json:
    if isinstance(request, GrpcCase):
        return comparable(answer(server.grpc, request))
    return comparable(normalised(send(server.http, request)))


def _lost(reply: Json, server: Server) -> bool:
    """Return whether gRPC reports that a server ended, or did not answer in time."""
    code = reply.get("code")
    return code == "DEADLINE_EXCEEDED" or (code in ("UNAVAILABLE", "CANCELLED", "UNKNOWN") and not _alive(server))


def _alive(server: Server) -> bool:
    """Return whether a server runs on; one that crashes needs a moment to end."""
    for _ in range(20):
        if not server.alive():
            return False
        time.sleep(0.05)
    return True
