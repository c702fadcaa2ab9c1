"""One server for the session, and each of tritonclient's four clients in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients import four
from tests.clients.models import write_models
from tests.peers.fixtures import StartServer, argosy_server, perf_analyzer
from tests.peers.server import Server

__all__ = ["argosy_server", "perf_analyzer"]

MODELS = Path(__file__).resolve().parents[1] / "models"
LOADED = [
    "add_sub",
    "bytes_identity",
    "chain",
    "classifier",
    "diamond",
    "every_type",
    "failing",
    "half",
    "identity",
    "parameters",
    "repeat",
    "scale",
    "sequence_sum",
    "sequence_text",
    "slow",
    "text",
    "versioned",
    "words",
]


@pytest.fixture(scope="session")
def server(argosy_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """Return Argosy's server in explicit mode, with LOADED loaded."""
    own = tmp_path_factory.mktemp("clients")
    write_models(own)
    flags = [f"--load-model={name}" for name in LOADED]
    return argosy_server(
        MODELS, f"--model-repository={own}", "--model-control-mode=explicit", "--allow-client-shm=true", *flags
    )


@pytest.fixture(scope="session", params=list(four.MODULES))
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[four.FourClient]:
    """Yield each client in turn."""
    connected = four.connect(request.param, server.http, server.grpc)
    yield connected
    four.close(connected)
