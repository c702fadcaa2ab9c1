"""Many clients at once: every answer is its own request's."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.clients.four import FourClient, close, connect
from tests.peers.server import Server

REQUESTS = 200
WORKERS = 16


def _check(client: FourClient, number: int) -> str:
    """Ask one of four models something that no other request asks; "" when the answer is right."""
    ask = (_check_sum, _check_text, _check_chain, _check_diamond)[number % 4]
    return ask(client, number)


def _wrong(number: int, got: Any, expected: Any) -> str:
    return "" if np.array_equal(got, expected) else f"request {number} got {got!r}, not {expected!r}"


def _check_sum(client: FourClient, number: int) -> str:
    rows = number % 3 + 1
    left = np.arange(16 * rows, dtype=np.int32).reshape(rows, 16) + number * 1000
    return _wrong(number, client.add_sub(left, left + 1).as_numpy("OUTPUT0"), left * 2 + 1)


def _check_text(client: FourClient, number: int) -> str:
    sent = np.array([[f"request {number}".encode() * (number % 7 + 1)]], np.object_)
    return _wrong(
        number, client.infer("text", [client.tensor("text_input", "BYTES", sent)]).as_numpy("text_output"), sent
    )


def _check_chain(client: FourClient, number: int) -> str:
    sent = np.full((1, number % 50 + 1), number, np.float32)
    return _wrong(number, client.infer("chain", [client.tensor("INPUT0", "FP32", sent)]).as_numpy("OUTPUT0"), sent)


def _check_diamond(client: FourClient, number: int) -> str:
    sent = np.full((1, 16), number, np.int32)
    return _wrong(number, client.infer("diamond", [client.tensor("IN", "INT32", sent)]).as_numpy("SUM"), sent * 18)


@pytest.mark.parametrize("name", ["http", "grpc"])
def test_every_answer_is_its_own_requests(server: Server, name: str) -> None:
    def work(worker: int) -> list[str]:
        client = connect(name, server.http, server.grpc)
        try:
            return [_check(client, number) for number in range(worker, REQUESTS, WORKERS)]
        finally:
            close(client)

    with ThreadPoolExecutor(WORKERS) as pool:
        wrong = [text for texts in pool.map(work, range(WORKERS)) for text in texts]
    assert len(wrong) == REQUESTS
    assert [text for text in wrong if text] == []
