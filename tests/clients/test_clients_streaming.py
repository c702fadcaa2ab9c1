"""Models that answer more than once, over the gRPC stream of the two gRPC clients."""

import queue
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.clients.four import FourClient, connect
from tests.clients.four import close as disconnect
from tests.peers.server import Server
from tritonclient import grpc
from tritonclient.grpc import aio as grpc_aio


@pytest.fixture
def streaming(server: Server) -> Iterator[FourClient]:
    """Yield a gRPC client of its own, since a client has one stream."""
    client = connect("grpc", server.http, server.grpc)
    yield client
    disconnect(client)


class Replies:
    """A stream's callback, and what it was given."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Any] = queue.Queue()

    def __call__(self, result: Any, error: Any) -> None:
        self._queue.put(error if error is not None else result)

    def take(self, count: int) -> list[Any]:
        """Return the next `count` replies."""
        return [self._queue.get(timeout=30) for _ in range(count)]

    def none_left(self) -> bool:
        return self._queue.empty()


def _is_final(result: Any) -> bool:
    return bool(result.get_response().parameters["triton_final_response"].bool_param)


def _values(client: FourClient, values: Sequence[int]) -> list[Any]:
    return [client.tensor("IN", "INT32", values)]


def test_a_decoupled_model(streaming: FourClient) -> None:
    replies = Replies()
    streaming.start_stream(replies)
    streaming.async_stream_infer(
        "repeat", _values(streaming, [4, 5, 6]), request_id="r1", enable_empty_final_response=True
    )
    got = replies.take(4)
    assert [int(result.as_numpy("OUT")[0]) for result in got[:3]] == [4, 5, 6]
    assert [int(result.as_numpy("IDX")[0]) for result in got[:3]] == [0, 1, 2]
    assert {result.get_response().id for result in got} == {"r1"}
    assert [_is_final(result) for result in got] == [False, False, False, True]
    assert not got[3].get_response().outputs
    streaming.stop_stream()
    assert replies.none_left()


def test_an_empty_final_response_comes_only_when_requested(streaming: FourClient) -> None:
    replies = Replies()
    streaming.start_stream(replies)
    streaming.async_stream_infer("repeat", _values(streaming, [1, 2]))
    assert [int(result.as_numpy("OUT")[0]) for result in replies.take(2)] == [1, 2]
    streaming.stop_stream()
    assert replies.none_left()


def test_a_model_with_one_answer_over_the_stream(streaming: FourClient) -> None:
    replies = Replies()
    row = np.arange(16, dtype=np.int32).reshape(1, 16)
    streaming.start_stream(replies)
    inputs = streaming.tensors({"INPUT0": ("INT32", row), "INPUT1": ("INT32", row)})
    streaming.async_stream_infer("add_sub", inputs)
    (only,) = replies.take(1)
    np.testing.assert_array_equal(only.as_numpy("OUTPUT0"), row * 2)
    assert _is_final(only)
    streaming.stop_stream()


def test_requests_on_one_stream_keep_their_ids(streaming: FourClient) -> None:
    replies = Replies()
    streaming.start_stream(replies)
    for number in range(10):
        streaming.async_stream_infer("repeat", _values(streaming, [number, number + 100]), request_id=str(number))
    got = replies.take(20)
    by_id: dict[str, list[int]] = {}
    for result in got:
        by_id.setdefault(result.get_response().id, []).append(int(result.as_numpy("OUT")[0]))
    assert by_id == {str(number): [number, number + 100] for number in range(10)}
    streaming.stop_stream()


def test_an_error_does_not_end_the_stream(streaming: FourClient) -> None:
    replies = Replies()
    streaming.start_stream(replies)
    text = [streaming.tensor("text_input", "BYTES", [b"one fail two"])]
    streaming.async_stream_infer("words", text)
    one, failed, two = replies.take(3)
    assert one.as_numpy("text_output").tolist() == [b"one"]
    assert "the word was fail" in str(failed)
    assert two.as_numpy("text_output").tolist() == [b"two"]
    streaming.async_stream_infer("no_such_model", text)
    assert "no_such_model" in str(replies.take(1)[0])
    streaming.async_stream_infer("words", [streaming.tensor("text_input", "BYTES", [b"on"])])
    assert replies.take(1)[0].as_numpy("text_output").tolist() == [b"on"]
    streaming.stop_stream()


def test_responses_arrive_as_they_are_made(streaming: FourClient) -> None:
    """The second request is sent in answer to the first response of the one before, which is still at work."""
    replies = Replies()
    streaming.start_stream(replies)
    delayed = [*_values(streaming, [1, 2, 3]), streaming.tensor("DELAY_MS", "UINT32", [300])]
    streaming.async_stream_infer("repeat", delayed, enable_empty_final_response=True)
    first = replies.take(1)[0]
    assert not _is_final(first)
    assert replies.none_left()
    assert [_is_final(result) for result in replies.take(3)] == [False, False, True]
    streaming.stop_stream()


def test_a_stream_that_is_cancelled_leaves_the_model_free(streaming: FourClient) -> None:
    replies = Replies()
    streaming.start_stream(replies)
    delayed = [*_values(streaming, range(20)), streaming.tensor("DELAY_MS", "UINT32", [20])]
    streaming.async_stream_infer("repeat", delayed)
    replies.take(1)
    streaming.stop_stream(cancel_requests=True)
    again = Replies()
    streaming.start_stream(again)
    streaming.async_stream_infer("repeat", _values(streaming, [7]))
    assert int(again.take(1)[0].as_numpy("OUT")[0]) == 7
    streaming.stop_stream()


async def test_the_asyncio_client(server: Server) -> None:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        for values in ([1, 2], [3]):
            tensor = grpc.InferInput("IN", [len(values)], "INT32")
            tensor.set_data_from_numpy(np.array(values, np.int32))
            yield {"model_name": "repeat", "inputs": [tensor], "request_id": str(len(values))}

    async with grpc_aio.InferenceServerClient(server.grpc) as client:
        got = [(result, error) async for result, error in client.stream_infer(requests())]
    assert all(error is None for _, error in got)
    seen = sorted((result.get_response().id, int(result.as_numpy("OUT")[0])) for result, _ in got)
    assert seen == [("1", 3), ("2", 1), ("2", 2)]
