"""A real server with the models that requests are queued for."""

from pathlib import Path

import pytest
from tests.peers.fixtures import StartServer
from tests.peers.server import Server

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="session")
def server(argosy_server: StartServer) -> Server:
    """Return Argosy's server with the models `identity` and `repeat`."""
    loaded = [f"--load-model={name}" for name in ("identity", "repeat")]
    return argosy_server(MODELS, "--model-control-mode=explicit", *loaded)
