"""Requests to the models of `models.py` by every way that a client has, and what a killed one leaves."""

import json
import queue
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tests.serve.process import Serving
from tritonclient import grpc as grpcclient
from tritonclient.utils import InferenceServerException

ANSWER_S = 30.0


class FailedError(Exception):
    """The answer was an error, with its text."""


Answer = tuple[int, int]
"""The sum of the sequence, and the process that made it."""
Send = Callable[..., Answer]


def over_http(server: Serving, model: str, x: int, sequence: int = 0, start: bool = False) -> Answer:
    """Send a request as JSON. Raises FailedError."""
    tensor = {"name": "X", "datatype": "INT32", "shape": [1, 1], "data": [x]}
    body: dict[str, Any] = {"inputs": [tensor]}
    if sequence:
        body["parameters"] = {"sequence_id": sequence, "sequence_start": start}
    status, text = server.ask(f"/v2/models/{model}/infer", body)
    answer = json.loads(text)
    if status != 200:
        raise FailedError(answer["error"])
    outputs = {output["name"]: output["data"][0] for output in answer["outputs"]}
    return outputs["SUM"], outputs["PID"]


def over_grpc(server: Serving, model: str, x: int, sequence: int = 0, start: bool = False) -> Answer:
    """Send a request by ModelInfer. Raises FailedError."""
    with client(server) as connected:
        try:
            answer = connected.infer(
                model, inputs(x), sequence_id=sequence, sequence_start=start, client_timeout=ANSWER_S
            )
        except InferenceServerException as error:
            raise FailedError(error.message()) from error
    return values(answer)


def over_a_stream(server: Serving, model: str, x: int, sequence: int = 0, start: bool = False) -> Answer:
    """Send a request on a stream of its own. Raises FailedError."""
    answers: queue.Queue[Any] = queue.Queue()
    with client(server) as connected:
        connected.start_stream(lambda result, error: answers.put(error or result))
        connected.async_stream_infer(model, inputs(x), sequence_id=sequence, sequence_start=start)
        answer = answers.get(timeout=ANSWER_S)
        connected.stop_stream()
    if isinstance(answer, InferenceServerException):
        raise FailedError(answer.message())
    return values(answer)


def by_a_model(server: Serving, model: str, x: int, sequence: int = 0, start: bool = False) -> Answer:
    """Have another model send it. Raises FailedError."""
    return over_http(server, f"call_{model}", x, sequence, start)


def by_an_ensemble(server: Serving, model: str, x: int, sequence: int = 0, start: bool = False) -> Answer:
    """Send it to an ensemble of the model. Raises FailedError."""
    return over_http(server, f"chain_{model}", x, sequence, start)


WAYS: dict[str, Send] = {
    "http": over_http,
    "grpc": over_grpc,
    "stream": over_a_stream,
    "bls": by_a_model,
    "ensemble": by_an_ensemble,
}


def client(server: Serving) -> Any:
    """Return a client of its gRPC port."""
    return grpcclient.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}")


def inputs(x: int) -> list[Any]:
    """Return X as tritonclient takes it."""
    tensor = grpcclient.InferInput("X", [1, 1], "INT32")
    tensor.set_data_from_numpy(np.array([[x]], np.int32))
    return [tensor]


def values(answer: Any) -> Answer:
    """Return sum and process of an answer over gRPC."""
    return int(answer.as_numpy("SUM")[0, 0]), int(answer.as_numpy("PID")[0, 0])


def result(send: Callable[[], Answer]) -> Answer | str:
    """Return an answer, or the text of its error."""
    try:
        return send()
    except FailedError as error:
        return str(error)


def held(server: Serving) -> dict[str, int]:
    """Return what the server and its processes hold: processes, files and mappings of shared memory."""
    main = psutil.Process(server.process.pid)
    tree = [main, *main.children(recursive=True)]
    maps = 0
    for process in tree:
        with suppress(OSError):
            text = Path(f"/proc/{process.pid}/maps").read_text()
            maps += sum("memfd:" in line or "/dev/shm/" in line for line in text.splitlines())
    return {
        "processes": len(tree),
        "files": sum(process.num_fds() for process in tree),
        "mappings": maps,
    }


def settled(server: Serving) -> dict[str, int]:
    """Return what the server holds once it holds the same three times in turn: connections close in a while."""
    looks = [held(server)]
    deadline = time.monotonic() + ANSWER_S
    while len(looks) < 3 or looks[-1] != looks[-2] or looks[-2] != looks[-3]:
        assert time.monotonic() < deadline, looks[-3:]
        time.sleep(0.1)
        looks.append(held(server))
    return looks[-1]
