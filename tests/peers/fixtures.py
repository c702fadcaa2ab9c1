"""Fixtures that start the peers. A conftest imports the ones its tests use.

Where a peer cannot be had the test is skipped with the reason; under CI=true it fails instead, since there
a missing oracle would go unseen.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from e2e.starting import give_up
from tests.peers import perf_analyzer as load
from tests.peers import s3 as storage
from tests.peers import vllm
from tests.peers.argosy import argosy
from tests.peers.cache import PeerUnavailableError
from tests.peers.server import Server
from tests.peers.triton import triton


class StartServer(Protocol):
    """Starts a server on a repository; it is stopped when the test session ends."""

    def __call__(self, repository: Path, *flags: str, wait_for: str = "/v2/health/ready") -> Server: ...


def _starter(start: Callable[..., Server], folder: Callable[[], Path]) -> tuple[StartServer, Callable[[], None]]:
    servers: list[Server] = []

    def call(repository: Path, *flags: str, wait_for: str = "/v2/health/ready") -> Server:
        try:
            server = start(repository, *flags, log=folder() / "server.log", wait_for=wait_for)
        except PeerUnavailableError as reason:
            give_up(reason)
        servers.append(server)
        return server

    def stop() -> None:
        for server in servers:
            server.stop()

    return call, stop


@pytest.fixture(scope="session")
def triton_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """Yield a function that starts the real tritonserver: `triton_server(repository, *flags)`."""
    call, stop = _starter(triton, lambda: tmp_path_factory.mktemp("triton"))
    yield call
    stop()


@pytest.fixture(scope="session")
def argosy_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """Yield a function that starts Argosy's server: `argosy_server(repository, *flags)`."""
    call, stop = _starter(argosy, lambda: tmp_path_factory.mktemp("argosy"))
    yield call
    stop()


@pytest.fixture(scope="session")
def perf_analyzer() -> Callable[[Sequence[str]], list[load.Row]]:
    """Return a function that runs the real load generator and returns a row per concurrency level."""
    try:
        load.install()
    except PeerUnavailableError as reason:
        give_up(reason)
    return load.perf_analyzer


@pytest.fixture(scope="session")
def s3() -> Iterator[storage.S3]:
    """Yield a real S3 server."""
    try:
        storage.install()
    except PeerUnavailableError as reason:
        give_up(reason)
    with storage.serving() as server:
        yield server


@pytest.fixture(scope="session")
def vllm_environment() -> Path:
    """Return the folder of an engine environment with vLLM for the CPU; its parent is what ARGOSY_ENGINES names."""
    try:
        return vllm.install()
    except PeerUnavailableError as reason:
        give_up(reason)
