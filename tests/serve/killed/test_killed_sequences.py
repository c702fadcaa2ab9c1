"""A model's process is killed while sequences run on it, by every way that clients have."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

import psutil
import pytest
from tests.serve import process
from tests.serve.killed import models
from tests.serve.killed.asking import WAYS, over_http, result, settled
from tests.serve.process import PATIENCE_S, Serving, wait_until

IDS = count(1)
FLAGS = ("--rate-limit=execution_count", "--cache-config=local,size=1048576")


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the marks."""
    return tmp_path_factory.mktemp("marks")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, marks: Path) -> Iterator[Serving]:
    """Yield a server with all models."""
    folder = tmp_path_factory.mktemp("killed")
    serving = process.start(models.write(folder / "models", marks), folder / "log", *FLAGS)
    try:
        yield serving.wait_until_ready()
    finally:
        serving.end()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("strategy", models.STRATEGIES)
def test_its_sequences_end_with_an_error_that_names_it(server: Serving, marks: Path, strategy: str, way: str) -> None:
    send = partial(WAYS[way], server, strategy)
    running, waiting, idle, later = (next(IDS) for _ in range(4))
    _, pid = send(1, running, True)
    for sequence in (waiting, idle):
        assert send(2, sequence, True) == (2, pid)
    before = settled(server)
    mark = marks / strategy
    mark.unlink(missing_ok=True)
    with ThreadPoolExecutor(3) as pool:
        slow = pool.submit(result, partial(send, 20_000, running))
        wait_until(mark.exists, server.log)
        behind = [pool.submit(result, partial(send, 3, sequence)) for sequence in (running, waiting)]
        # A front end has taken them once the model's queue has grown; only then the process is killed.
        wait_until(lambda: _pending(server, strategy) == 2, server.log)
        psutil.Process(pid).kill()
        errors = [answer.result(PATIENCE_S) for answer in (slow, *behind)]
    for error in errors:
        assert isinstance(error, str), error
        assert f"'{strategy}" in error
    assert "SIGKILL" in errors[0]
    ended = result(partial(send, 4, idle))
    assert isinstance(ended, str), ended
    assert f"model '{strategy}' has ended, because the instance that it ran on was lost" in ended
    total, other = _revived(server, partial(send, 5, later, True))
    assert total == 5
    assert other != pid
    assert send(6, later) == (11, other)
    assert settled(server) == before


def _revived(server: Serving, send: partial[tuple[int, int]]) -> tuple[int, int]:
    """Return the first answer, which the model gives once its process is back."""
    answers: list[tuple[int, int]] = []

    def try_once() -> bool:
        answer = result(send)
        answers.extend([answer] if isinstance(answer, tuple) else [])
        return bool(answers)

    wait_until(try_once, server.log)
    return answers[0]


def _pending(server: Serving, model: str) -> int:
    lines = server.metrics().splitlines()
    head = f'nv_inference_pending_request_count{{model="{model}"'
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith(head))


def test_a_killed_process_gives_its_resources_back(server: Serving, marks: Path) -> None:
    mark = marks / "limited_a"
    mark.unlink(missing_ok=True)
    _, pid = over_http(server, "limited_a", 1)
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(result, partial(over_http, server, "limited_a", 20_000))
        wait_until(mark.exists, server.log)
        other = pool.submit(result, partial(over_http, server, "limited_b", 7))
        wait_until(lambda: _pending(server, "limited_b") == 1, server.log)
        psutil.Process(pid).kill()
        assert "SIGKILL" in str(slow.result(PATIENCE_S))
        answer = other.result(PATIENCE_S)
    assert isinstance(answer, tuple), answer
    assert answer[0] == 7
    for name in ("limited_a", "limited_b"):
        assert _revived(server, partial(over_http, server, name, 8))[0] == 8


def test_the_error_of_a_killed_process_is_not_cached(server: Serving, marks: Path) -> None:
    mark = marks / "cached"
    mark.unlink(missing_ok=True)
    _, pid = over_http(server, "cached", 1)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(result, partial(over_http, server, "cached", 1_500))
        wait_until(mark.exists, server.log)
        psutil.Process(pid).kill()
        assert "SIGKILL" in str(slow.result(PATIENCE_S))
    assert over_http(server, "cached", 1) == (1, pid), "what was cached is kept"
    total, other = _revived(server, partial(over_http, server, "cached", 1_500))
    assert total == 1_500
    assert over_http(server, "cached", 1_500) == (1_500, other)
    assert other != pid
