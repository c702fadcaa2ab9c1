"""The batches that both servers make of the same queue."""

from collections.abc import Iterator

import pytest
from tests.differential import batching_cases
from tests.differential.conftest import PEERS
from tests.peers.fixtures import StartServer
from tests.peers.server import Server


@pytest.fixture(scope="module", params=PEERS)
def held(
    request: pytest.FixtureRequest,
    triton_server: StartServer,
    argosy_server: StartServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """Yield each side in turn, with a model for each case that waits for its first requests."""
    repository = batching_cases.write(tmp_path_factory.mktemp("batching"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TRITONSERVER_DELAY_SCHEDULER", str(batching_cases.HELD))
        server = {"triton": triton_server, "argosy": argosy_server}[request.param](repository)
    yield server
    server.stop()


@pytest.mark.parametrize("case", batching_cases.CASES, ids=lambda case: case.name)
def test_the_same_requests_share_a_batch(held: Server, case: batching_cases.Batches) -> None:
    assert batching_cases.runs(held.http, case) == case.runs
