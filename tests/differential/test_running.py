"""A server that ended: the real Triton's is started again, Argosy's is a failure."""

import sys
from pathlib import Path

import pytest
from tests.differential.running import MOST_ENDS, Running
from tests.peers.server import Server, start

SERVE = """
import http.server, sys
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Health).serve_forever()
"""


@pytest.fixture
def running(tmp_path: Path) -> Running:
    def started(side: str) -> Server:
        return start(side, lambda ports: [sys.executable, "-c", SERVE, str(ports.http)], tmp_path / "log", {})

    return Running(started)


def _kill(server: Server) -> None:
    server.process.kill()
    server.process.wait()


def test_a_side_keeps_its_server(running: Running) -> None:
    try:
        assert running.server("triton") is running.server("triton")
        assert running.server("argosy") is not running.server("triton")
        assert running.ends == 0
    finally:
        running.stop()


def test_triton_is_started_again_where_it_ended(running: Running) -> None:
    first = running.server("triton")
    try:
        _kill(first)
        second = running.server("triton")
        assert second is not first
        assert second.alive()
    finally:
        running.stop()


def test_triton_that_ends_too_often_is_a_failure(running: Running) -> None:
    _kill(running.server("triton"))
    running.ends = MOST_ENDS
    with pytest.raises(AssertionError, match="ended 8 times"):
        running.server("triton")


def test_that_argosy_ended_is_a_failure(running: Running) -> None:
    _kill(running.server("argosy"))
    with pytest.raises(AssertionError, match="Argosy's server ended"):
        running.server("argosy")
