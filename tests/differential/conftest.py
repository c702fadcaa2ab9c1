"""One server per side for all tests, each with every model of tests/models loaded."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.differential.generated.models import MODELS as GENERATED_FOR
from tests.differential.generated.servers import Servers
from tests.differential.oracle import MODELS, OWN_FLAGS, flags
from tests.differential.running import Running
from tests.peers.fixtures import StartServer, argosy_server, triton_server
from tests.peers.server import Server

__all__ = ["argosy_server", "triton_server"]

PEERS = [pytest.param("triton", marks=pytest.mark.triton), "argosy"]


@pytest.fixture(scope="session")
def started(triton_server: StartServer, argosy_server: StartServer) -> Callable[[str], Server]:
    """Return a function that gives the running server of a side, started at the first call for it."""
    starters = {"triton": triton_server, "argosy": argosy_server}
    return Running(lambda side: starters[side](MODELS, *flags(), *OWN_FLAGS[side])).server


@pytest.fixture(params=PEERS)
def server(request: pytest.FixtureRequest, started: Callable[[str], Server]) -> Server:
    """Return each side in turn: the oracle keeps the recordings true, Argosy is compared with them."""
    return started(request.param)


SERVERS: list[Servers] = []


@pytest.fixture(scope="session")
def servers(triton_server: StartServer, argosy_server: StartServer) -> Iterator[Servers]:
    """Yield two servers of their own for generated requests, of which the real Triton may end."""
    starters = {"triton": triton_server, "argosy": argosy_server}
    names = [model.name for model in GENERATED_FOR]
    both = Servers(lambda side: starters[side](MODELS, *flags(names), *OWN_FLAGS[side]))
    SERVERS.append(both)
    yield both
    both.stop()


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many cases were compared: recorded ones by the tests that passed, and generated ones."""
    reports = terminalreporter.getreports("passed")
    recorded = [report for report in reports if "tests/differential/" in report.nodeid and "[" in report.nodeid]
    triton = sum("[triton" in report.nodeid or "test_triton_" in report.nodeid for report in recorded)
    compared = sum((both.compared for both in SERVERS), Counter[str]())
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(compared.items()))
    terminalreporter.write_line(
        f"differential: {len(recorded)} recorded cases ({triton} asked of the real Triton), "
        f"{compared.total()} generated requests ({kinds or 'none in this process'})"
    )
    for request in (request for both in SERVERS for request in both.ended_by):
        terminalreporter.write_line(f"differential: the real Triton ended, or did not answer: {request}")
