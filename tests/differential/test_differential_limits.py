"""The response cache and the rate limiter answer and count as Triton's; the cases run in their order on one server."""

import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest
from tests.differential import limits, metrics_cases
from tests.differential.conftest import PEERS
from tests.differential.deviations import owed
from tests.differential.http_calls import infer, send, tensor
from tests.differential.limits import ANSWERS, FLAGS, MODELS, STATISTICS
from tests.differential.normalise import normalised
from tests.differential.oracle import recorded
from tests.differential.statistics_cases import StatisticsCase, moved
from tests.peers.fixtures import StartServer
from tests.peers.server import Server
from tests.waiting import wait


@pytest.fixture(scope="module", params=PEERS)
def limited(
    request: pytest.FixtureRequest, triton_server: StartServer, argosy_server: StartServer
) -> Iterator[tuple[str, Server]]:
    """Return each side with a cache and a rate limiter."""
    server = {"triton": triton_server, "argosy": argosy_server}[request.param](MODELS, *FLAGS)
    yield request.param, server
    server.stop()


@pytest.mark.parametrize("case", STATISTICS, ids=lambda case: str(case.name))
def test_counts_move_as_recorded(limited: tuple[str, Server], case: StatisticsCase) -> None:
    side, server = limited
    assert moved(server.http, case) == owed(side, "limits", case.name, recorded("limits")[case.name])


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_as_recorded(limited: tuple[str, Server], name: str) -> None:
    side, server = limited
    expected = owed(side, "limits", name, recorded("limits")[name])
    assert normalised(send(server.http, ANSWERS[name])) == normalised(expected)


def test_metrics_count_as_recorded(limited: tuple[str, Server]) -> None:
    side, server = limited
    assert limits.counts(server) == owed(side, "limits", "metrics", recorded("limits")["metrics"])


def test_families_are_as_recorded(limited: tuple[str, Server]) -> None:
    _, server = limited
    expected = recorded("limits")["families"]
    wait(lambda: expected.keys() <= metrics_cases.families(server).keys(), pause_s=0.1)
    families = metrics_cases.families(server)
    assert {name: families[name] for name in expected} == expected


def _times(server: Server, *models: str) -> list[tuple[float, float]]:
    """Return when concurrent executions of models, 0.3 s each, began and ended."""
    times: list[tuple[float, float]] = []

    def ask(model: str) -> None:
        answer = send(server.http, infer(model, tensor("SECONDS", [1], "FP32", [0.3])))
        times.append(tuple(answer["body"]["outputs"][0]["data"]))

    threads = [threading.Thread(target=ask, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(times)


def test_models_that_need_too_much_of_one_resource_run_one_after_the_other(limited: tuple[str, Server]) -> None:
    _, server = limited
    times = _times(server, "limited_a", "limited_b", "limited_a", "limited_b")
    assert len(times) == 4
    assert all(ended <= begun for (_, ended), (begun, _) in pairwise(times)), times
