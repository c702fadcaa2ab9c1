"""The running server of each side. The real Triton is started again where it ended; that Argosy ended is a failure."""

from collections.abc import Callable

from tests.peers.server import Server, answers

MOST_ENDS = 8
"""So many times the real Triton is started again."""


class Running:
    """The server of each side, started at its first use."""

    def __init__(self, start: Callable[[str], Server]) -> None:
        self._start = start
        self._servers: dict[str, Server] = {}
        self.ends = 0
        """How many times the real Triton was started again."""

    def server(self, side: str) -> Server:
        """Return the side's server, which answers.

        Raises AssertionError where Argosy ended, or the real Triton too often.
        """
        server = self._servers.get(side)
        if server is not None and not (server.alive() and answers(server, "/v2/health/live")):
            assert side == "triton", f"Argosy's server ended or does not answer:\n{server.tail()}"
            assert self.ends < MOST_ENDS, f"the real Triton ended {MOST_ENDS} times before:\n{server.tail()}"
            self.restart_next(side)
        if side not in self._servers:
            self._servers[side] = self._start(side)
        return self._servers[side]

    def restart_next(self, side: str) -> None:
        """Stop the side's server; its next use starts another."""
        self.ends += 1
        self._servers.pop(side).stop(grace_s=2.0)

    def stop(self) -> None:
        """Stop both."""
        for server in self._servers.values():
            server.stop()
