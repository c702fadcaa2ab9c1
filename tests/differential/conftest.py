"""One server per side for the whole session, each with every model of tests/models loaded."""

from collections.abc import Callable
from functools import cache

import pytest
from tests.differential.oracle import MODELS, OWN_FLAGS, flags
from tests.peers.fixtures import StartServer, argosy_server, triton_server
from tests.peers.server import Server

__all__ = ["argosy_server", "triton_server"]

PEERS = [pytest.param("triton", marks=pytest.mark.triton), "argosy"]


@pytest.fixture(scope="session")
def started(triton_server: StartServer, argosy_server: StartServer) -> Callable[[str], Server]:
    """Return a function that gives the running server of a side, started at the first call for it."""
    starters = {"triton": triton_server, "argosy": argosy_server}
    return cache(lambda side: starters[side](MODELS, *flags(), *OWN_FLAGS[side]))


@pytest.fixture(scope="session", params=PEERS)
def server(request: pytest.FixtureRequest, started: Callable[[str], Server]) -> Server:
    """Return each side in turn: the oracle keeps the recordings true, Argosy is compared with them."""
    return started(request.param)
