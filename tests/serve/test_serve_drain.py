"""`argosy serve` goes on answering after its signal until no more requests come, at most for as long as it may."""

import http.client
import json
import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
from tests.serve.conftest import AddModel, Start
from tests.serve.process import PATIENCE_S, Serving, wait_until
from tritonclient.utils import InferenceServerException

IDLE_S = 2.0
"""Long compared with the pause between two requests, on a machine that is busy."""
WORKERS = 3
PAUSE_S = 0.02
HELD = """open({folder!r} + "/begun", "w").close()
        while not os.path.exists({folder!r} + "/released"):
            time.sleep(0.01)
        y = x"""
SOON = ("--drain-quiet-secs=0.2", "--exit-timeout-secs=0.2", "--drain-timeout-secs=600")
WELL_AFTER_S = 1.5
"""More than the idle period and the exit timeout together."""


class Load:
    """Requests over HTTP and gRPC, each on a connection of its own. `failed` is what was not answered."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        self.answered = 0
        self.failed: list[str] = []
        self.enough = threading.Event()

    def work(self, number: int) -> None:
        """Run one worker."""
        ask = self._over_grpc if number == 0 else self._over_http
        while not self.enough.is_set():
            try:
                ask()
            except Exception as error:
                self.failed.append(f"{type(error).__name__}: {error}")
            else:
                self.answered += 1
            self.enough.wait(PAUSE_S)

    def more(self, seconds: float) -> None:
        """Wait for requests that take so long altogether, one after the other."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.failed:
            self.enough.wait(PAUSE_S)

    def _over_http(self) -> None:
        assert self._server.infer("echo", 7) == (200, 7)

    def _over_grpc(self) -> None:
        tensor = triton.InferInput("X", [1], "INT32")
        tensor.set_data_from_numpy(np.array([7], np.int32))
        with triton.InferenceServerClient(f"127.0.0.1:{self._server.ports['GRPCInference']}") as client:
            assert client.infer("echo", [tensor], client_timeout=PATIENCE_S).as_numpy("Y").tolist() == [7]


@contextmanager
def loaded(server: Serving) -> Iterator[Load]:
    """Keep a server under load while the block runs."""
    load = Load(server)
    threads = [threading.Thread(target=load.work, args=(number,)) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.enough.set()
        for thread in threads:
            thread.join()


@pytest.fixture
def add_echo(add_model: AddModel) -> None:
    """Write a model that answers its input."""
    add_model("echo")


def _begin_to_end(server: Serving) -> None:
    server.process.terminate()
    wait_until(lambda: "draining" in server.text, server.log)


@pytest.mark.usefixtures("add_echo")
def test_nothing_is_refused_while_requests_come_and_it_ends_when_none_do(serve: Start) -> None:
    server = serve(f"--drain-quiet-secs={IDLE_S}", "--drain-timeout-secs=600").wait_until_ready()
    with loaded(server) as load:
        _begin_to_end(server)
        load.more(2 * IDLE_S)
        assert server.process.poll() is None
        assert server.status("/v2/health/ready") == 400
        assert server.status("/v2/health/live") == 200
    assert load.failed == []
    assert load.answered > WORKERS
    assert server.process.wait(PATIENCE_S) == 0
    assert server.left() == []


@pytest.mark.usefixtures("add_echo")
def test_endless_requests_do_not_keep_it_beyond_its_time(serve: Start) -> None:
    server = serve("--drain-quiet-secs=300", "--drain-timeout-secs=1").wait_until_ready()
    with loaded(server):
        _begin_to_end(server)
        assert server.process.wait(PATIENCE_S) == 0
    assert server.left() == []


@pytest.mark.usefixtures("add_echo")
def test_a_second_signal_ends_the_wait(serve: Start) -> None:
    server = serve("--drain-quiet-secs=300", "--drain-timeout-secs=300").wait_until_ready()
    _begin_to_end(server)
    server.process.terminate()
    assert server.process.wait(PATIENCE_S) == 0
    assert server.left() == []


@pytest.mark.usefixtures("add_echo")
def test_clients_that_keep_their_connection_are_sent_away(serve: Start) -> None:
    server = serve("--drain-quiet-secs=300", "--drain-timeout-secs=300").wait_until_ready()
    tensor = {"name": "X", "datatype": "INT32", "shape": [1], "data": [7]}
    connection = http.client.HTTPConnection("127.0.0.1", server.ports["HTTP"], timeout=PATIENCE_S)

    def ask() -> str | None:
        connection.request("POST", "/v2/models/echo/infer", json.dumps({"inputs": [tensor]}))
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["outputs"][0]["data"]) == (200, [7])
        return answer.getheader("Connection")

    assert ask() is None
    _begin_to_end(server)
    assert ask() == "close"
    assert server.infer("echo", 7) == (200, 7)


def test_an_answer_may_take_longer_than_the_idle_period(serve: Start, add_model: AddModel, tmp_path: Path) -> None:
    add_model("held", HELD.format(folder=str(tmp_path)))
    server = serve(*SOON).wait_until_ready()
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(server.infer, "held", 7)
        wait_until((tmp_path / "begun").exists, server.log)
        _begin_to_end(server)
        time.sleep(WELL_AFTER_S)
        (tmp_path / "released").touch()
        assert answer.result() == (200, 7)
    assert server.process.wait(PATIENCE_S) == 0


@pytest.mark.usefixtures("add_echo")
def test_a_connection_is_not_closed_while_its_client_may_use_it_again(serve: Start) -> None:
    server = serve(*SOON).wait_until_ready()
    connection = http.client.HTTPConnection("127.0.0.1", server.ports["HTTP"], timeout=PATIENCE_S)
    tensor = {"name": "X", "datatype": "INT32", "shape": [1], "data": [7]}

    def ask() -> tuple[int, str | None]:
        connection.request("POST", "/v2/models/echo/infer", json.dumps({"inputs": [tensor]}))
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("Connection")

    assert ask() == (200, None)
    connection.auto_open = 0  # A closed connection is an error, not opened again.
    _begin_to_end(server)
    time.sleep(WELL_AFTER_S)
    assert ask() == (200, "close")
    assert server.process.wait(PATIENCE_S) == 0
    assert server.left() == []


@pytest.mark.usefixtures("add_echo")
def test_a_grpc_stream_that_goes_on_ends_behind_an_answer(serve: Start) -> None:
    server = serve("--drain-quiet-secs=300", "--drain-timeout-secs=1", "--exit-timeout-secs=600").wait_until_ready()
    answers: queue.Queue[object] = queue.Queue()
    tensor = triton.InferInput("X", [1], "INT32")
    tensor.set_data_from_numpy(np.array([7], np.int32))
    with triton.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}") as client:
        client.start_stream(lambda result, error: answers.put(error or result))
        client.async_stream_infer("echo", [tensor])
        assert isinstance(answers.get(timeout=PATIENCE_S), triton.InferResult)
        _begin_to_end(server)
        client.async_stream_infer("echo", [tensor])
        assert isinstance(answers.get(timeout=PATIENCE_S), triton.InferResult)
        ended = answers.get(timeout=PATIENCE_S)
    assert isinstance(ended, InferenceServerException)
    message = "GRPC server is shutting down and has stopped accepting new requests."
    assert (ended.status(), ended.message()) == ("StatusCode.UNAVAILABLE", message)
    assert server.process.wait(PATIENCE_S) == 0
