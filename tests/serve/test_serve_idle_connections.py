"""Ten thousand connections that ask for nothing cost a server little memory, and no request its answer."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest
from tests.serve.conftest import AddModel, Start
from tests.serve.process import PATIENCE_S

CONNECTIONS = 10_000
CONNECTION_BYTES = 24 << 10


@contextmanager
def _many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < CONNECTIONS + 1000:
        pytest.skip(f"this process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (CONNECTIONS + 1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("port", ["HTTP", "GRPCInference"])
def test_idle_connections_are_borne(serve: Start, add_model: AddModel, port: str) -> None:
    add_model("echo")
    with _many_files(), ExitStack() as opened:
        server = serve().wait_until_ready()
        process = psutil.Process(server.process.pid)
        assert server.infer("echo", 1) == (200, 1)
        before = process.memory_info().rss
        address = ("127.0.0.1", server.ports[port])
        for _ in range(CONNECTIONS):
            opened.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
        assert server.infer("echo", 7) == (200, 7)
        assert process.memory_info().rss - before < CONNECTIONS * CONNECTION_BYTES
        server.process.terminate()
        assert server.process.wait(PATIENCE_S) == 0
