"""Sequences by each client: ids of both types, in turn, over the stream."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.clients.four import FourClient, connect
from tests.clients.four import close as disconnect
from tests.clients.test_clients_streaming import Replies
from tests.peers.server import Server
from tritonclient.utils import InferenceServerException

IDS = count(1000)


def _total(client: FourClient, value: int, sequence: int, start: bool = False, end: bool = False) -> int:
    inputs = [client.tensor("IN", "INT32", [[value]])]
    result = client.infer("sequence_sum", inputs, sequence_id=sequence, sequence_start=start, sequence_end=end)
    return int(result.as_numpy("SUM")[0, 0])


def test_two_sequences_in_turn(client: FourClient) -> None:
    one, two = next(IDS), next(IDS)
    assert _total(client, 1, one, start=True) == 1
    assert _total(client, 100, two, start=True) == 100
    assert [_total(client, 2, one), _total(client, 200, two)] == [3, 300]
    assert [_total(client, 3, one, end=True), _total(client, 300, two, end=True)] == [6, 600]


def test_a_sequence_that_has_not_begun(client: FourClient) -> None:
    sequence = next(IDS)
    with pytest.raises(
        InferenceServerException, match=f"sequence {sequence} to model 'sequence_sum' must specify the START"
    ):
        _total(client, 1, sequence)


def test_an_id_that_is_a_text(client: FourClient) -> None:
    sequence = f"s{next(IDS)}"

    def answer(value: str, **flags: bool) -> Any:
        inputs = [client.tensor("IN", "BYTES", [value.encode()])]
        return client.infer("sequence_text", inputs, sequence_id=sequence, **flags).as_numpy("OUT")[0]

    assert answer("a", sequence_start=True) == f"{sequence}:a".encode()
    assert answer("b", sequence_end=True) == f"{sequence}:b".encode()


@pytest.fixture
def streaming(server: Server) -> Iterator[FourClient]:
    """Yield a gRPC client of its own, since a client has one stream."""
    client = connect("grpc", server.http, server.grpc)
    yield client
    disconnect(client)


def test_sequences_over_the_stream(streaming: FourClient) -> None:
    replies = Replies()
    streaming.start_stream(replies)
    sequences = [next(IDS) for _ in range(3)]
    values = [1, 2, 3, 4]
    for index, value in enumerate(values):
        for sequence in sequences:
            streaming.async_stream_infer(
                "sequence_sum",
                [streaming.tensor("IN", "INT32", [[value]])],
                request_id=f"{sequence}_{index}",
                sequence_id=sequence,
                sequence_start=index == 0,
                sequence_end=index == len(values) - 1,
            )
    totals: dict[str, list[int]] = {}
    for result in replies.take(len(values) * len(sequences)):
        totals.setdefault(result.get_response().id.split("_")[0], []).append(int(result.as_numpy("SUM")[0, 0]))
    assert totals == {str(sequence): [1, 3, 6, 10] for sequence in sequences}
