"""Streams and shared memory: a model's process is killed, or the server is told to end, while they are in use."""

import queue
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from tests.memory_objects import memory_object
from tests.serve import process
from tests.serve.killed import models
from tests.serve.killed.asking import ANSWER_S, client, inputs, over_http, result, settled, values
from tests.serve.process import PATIENCE_S, Serving, wait_until
from tritonclient import grpc as grpcclient
from tritonclient.utils import InferenceServerException


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    """Yield a server with all models and shared memory."""
    flags = ("--allow-client-shm=true", "--rate-limit=execution_count", "--cache-config=local,size=1048576")
    serving = process.start(models.write(tmp_path / "models", tmp_path), tmp_path / "log", *flags)
    try:
        yield serving.wait_until_ready()
    finally:
        serving.end()


def test_a_killed_process_ends_its_stream_and_no_other_request(server: Serving) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    with client(server) as connected:
        connected.start_stream(lambda result, error: answers.put(error or result))
        connected.async_stream_infer("stream", inputs(100_000))
        number, pid = values(answers.get(timeout=ANSWER_S))
        assert number == 0
        psutil.Process(pid).kill()
        while not isinstance(answer := answers.get(timeout=ANSWER_S), InferenceServerException):
            number += 1
            assert values(answer)[0] == number
        assert "'stream" in answer.message()
        assert "SIGKILL" in answer.message()
        connected.async_stream_infer("plain", inputs(5))
        assert values(answers.get(timeout=ANSWER_S))[0] == 5
        connected.async_stream_infer("stream", inputs(3))
        assert [values(answers.get(timeout=ANSWER_S))[0] for _ in range(3)] == [0, 1, 2]
        connected.stop_stream()


def test_a_killed_process_lets_regions_go(server: Serving, tmp_path: Path) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    with memory_object(np.array([20_000, 0], np.int32).tobytes()) as made, client(server) as connected:
        pid = values(connected.infer("plain", inputs(1)))[1]
        before = settled(server)
        connected.register_system_shared_memory("r", made.key, 8)
        shared, output = grpcclient.InferInput("X", [1, 1], "INT32"), grpcclient.InferRequestedOutput("SUM")
        shared.set_shared_memory("r", 4)
        output.set_shared_memory("r", 4, offset=4)
        connected.async_infer("plain", [shared], lambda result, error: answers.put(error or result), outputs=[output])
        wait_until((tmp_path / "plain").exists, server.log)
        psutil.Process(pid).kill()
        assert "SIGKILL" in answers.get(timeout=ANSWER_S).message()
        connected.unregister_system_shared_memory("r")
        assert values(connected.infer("plain", inputs(6)))[0] == 6
        assert settled(server) == before
        assert np.frombuffer(made.read(), np.int32).tolist() == [20_000, 0]


def test_a_signal_lets_a_request_of_a_sequence_end(server: Serving, tmp_path: Path) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    with client(server) as connected:
        flags: dict[str, Any] = {"sequence_id": 7, "sequence_start": True, "sequence_end": True}
        connected.async_infer("oldest", inputs(1_500), lambda result, error: answers.put(error or result), **flags)
        wait_until((tmp_path / "oldest").exists, server.log)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in server.text, server.log)
        # As in the newest Triton the port of gRPC takes no further request, and that of HTTP says why.
        refused = result(partial(over_http, server, "plain", 1))
        assert "Server is stopping, scheduler for model has stopped accepting new inference requests" in str(refused)
        assert values(answers.get(timeout=ANSWER_S))[0] == 1_500
    assert server.process.wait(PATIENCE_S) == 0
    assert server.left() == []
