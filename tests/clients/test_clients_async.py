"""Requests that do not wait for each other: async_infer of the two plain clients, tasks of the two for asyncio."""

import asyncio
import queue
from typing import Any

import numpy as np
import pytest
from tests.clients.four import FourClient
from tests.peers.server import Server
from tritonclient import grpc, http
from tritonclient.grpc import aio as grpc_aio
from tritonclient.http import aio as http_aio
from tritonclient.utils import InferenceServerException

MANY = 40


def _row(number: int) -> np.ndarray:
    return np.full((1, 16), number, np.int32)


@pytest.mark.parametrize("client", ["http"], indirect=True)
def test_http_async_infer(client: FourClient, server: Server) -> None:
    with http.InferenceServerClient(server.http, concurrency=8) as inner:
        inputs = [client.tensors({"INPUT0": ("INT32", _row(n)), "INPUT1": ("INT32", _row(1))}) for n in range(MANY)]
        pending = [inner.async_infer("add_sub", tensors) for tensors in inputs]
        answers = [int(request.get_result(timeout=30).as_numpy("OUTPUT0")[0, 0]) for request in pending]
        failed = inner.async_infer("failing", [client.tensor("HOW", "BYTES", [b"error"])])
        with pytest.raises(InferenceServerException, match="an error of the model's"):
            failed.get_result(timeout=30)
    assert answers == [n + 1 for n in range(MANY)]


@pytest.mark.parametrize("client", ["grpc"], indirect=True)
def test_grpc_async_infer(client: FourClient) -> None:
    answers: queue.Queue[tuple[int, Any, Any]] = queue.Queue()
    for n in range(MANY):
        inputs = client.tensors({"INPUT0": ("INT32", _row(n)), "INPUT1": ("INT32", _row(1))})
        client.async_infer("add_sub", inputs, lambda result, error, n=n: answers.put((n, result, error)))
    got = [answers.get(timeout=30) for _ in range(MANY)]
    assert {n: int(result.as_numpy("OUTPUT0")[0, 0]) for n, result, _ in got} == {n: n + 1 for n in range(MANY)}
    assert all(error is None for _, _, error in got)
    client.async_infer(
        "failing",
        [client.tensor("HOW", "BYTES", [b"error"])],
        lambda result, error: answers.put((0, result, error)),
    )
    _, result, error = answers.get(timeout=30)
    assert result is None
    assert "an error of the model's" in str(error)


@pytest.mark.parametrize("client", ["grpc"], indirect=True)
def test_grpc_cancel(client: FourClient) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    call = client.async_infer("slow", [client.tensor("IN", "INT32", [500])], lambda result, error: answers.put(error))
    call.cancel()
    assert answers.get(timeout=30).status() == "StatusCode.CANCELLED"
    assert client.infer("slow", [client.tensor("IN", "INT32", [0])]).as_numpy("OUT").tolist() == [0]


@pytest.mark.parametrize("module", [http_aio, grpc_aio], ids=["http.aio", "grpc.aio"])
async def test_asyncio_clients(module: Any, server: Server) -> None:
    async with module.InferenceServerClient(server.grpc if module is grpc_aio else server.http) as client:

        async def ask(number: int) -> int:
            inputs = [grpc.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
            if module is http_aio:
                inputs = [http.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
            for tensor, value in zip(inputs, (number, 1), strict=True):
                tensor.set_data_from_numpy(_row(value))
            return int((await client.infer("add_sub", inputs)).as_numpy("OUTPUT0")[0, 0])

        assert await asyncio.gather(*map(ask, range(MANY))) == [n + 1 for n in range(MANY)]
