"""Requests with more than tensors, by each client."""

import json
from typing import Any

import numpy as np
import pytest
from tests.clients.four import FourClient

LEFT = np.arange(16, dtype=np.int32).reshape(1, 16)
RIGHT = np.full((1, 16), 3, np.int32)


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_batch(client: FourClient, batch: int) -> None:
    left = np.arange(16 * batch, dtype=np.int32).reshape(batch, 16)
    right = left[::-1] * 7
    result = client.add_sub(left, right)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), left + right)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), left - right)


def _names(result: Any) -> list[str]:
    response = result.get_response()
    if isinstance(response, dict):
        return [output["name"] for output in response["outputs"]]
    return [output.name for output in response.outputs]


def test_without_outputs_named_all_come(client: FourClient) -> None:
    assert _names(client.add_sub(LEFT, RIGHT)) == ["OUTPUT0", "OUTPUT1"]


def test_requested_outputs(client: FourClient) -> None:
    result = client.add_sub(LEFT, RIGHT, outputs=[client.output("OUTPUT1")])
    assert _names(result) == ["OUTPUT1"]
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), LEFT - RIGHT)
    assert result.as_numpy("OUTPUT0") is None


@pytest.mark.parametrize("client", ["http", "http.aio"], indirect=True)
def test_binary_and_json_outputs_in_one_answer(client: FourClient) -> None:
    outputs = [client.output("OUTPUT0", binary_data=False), client.output("OUTPUT1", binary_data=True)]
    result = client.add_sub(LEFT, RIGHT, outputs=outputs)
    assert result.get_output("OUTPUT0")["data"] == (LEFT + RIGHT).reshape(-1).tolist()
    assert "data" not in result.get_output("OUTPUT1")
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), LEFT - RIGHT)


@pytest.mark.parametrize("client", ["http", "http.aio"], indirect=True)
@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_http_compression(client: FourClient, algorithm: str) -> None:
    result = client.add_sub(
        LEFT, RIGHT, request_compression_algorithm=algorithm, response_compression_algorithm=algorithm
    )
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), LEFT + RIGHT)


@pytest.mark.parametrize("client", ["grpc", "grpc.aio"], indirect=True)
@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_grpc_compression(client: FourClient, algorithm: str) -> None:
    result = client.add_sub(LEFT, RIGHT, compression_algorithm=algorithm)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), LEFT + RIGHT)


def test_classification(client: FourClient) -> None:
    scores = [[0.1, 0.7, 0.2, 0.4], [4.0, 3.0, 2.0, 1.0]]
    result = client.infer(
        "classifier",
        [client.tensor("IN", "FP32", scores)],
        outputs=[client.output("SCORES", class_count=2), client.output("RANKS", class_count=1)],
    )
    labels = ["cat", "dog", "bird"]
    rows = [[label.decode().split(":") for label in row] for row in result.as_numpy("SCORES")]
    assert [[int(parts[1]) for parts in row] for row in rows] == [[1, 3], [0, 1]]
    assert [float(parts[0]) for parts in rows[0]] == pytest.approx([0.7, 0.4])
    assert all(parts[2] == labels[int(parts[1])] for row in rows for parts in row if len(parts) > 2)
    assert rows[0][0][2] == labels[1]
    assert result.as_numpy("RANKS").tolist() == [[b"3:1"], [b"3:0"]]


def test_request_id(client: FourClient) -> None:
    response = client.add_sub(LEFT, RIGHT, request_id="mine-7").get_response()
    assert (response["id"] if isinstance(response, dict) else response.id) == "mine-7"


def test_parameters_reach_the_model(client: FourClient) -> None:
    sent = {"text": "gr\u00fcn", "count": 3, "flag": True}
    result = client.infer("parameters", [client.tensor("IN", "FP32", [0.0])], request_id="r", parameters=sent)
    seen = json.loads(result.as_numpy("PARAMETERS")[0])
    assert {key: seen[key] for key in sent} == sent
    facts = json.loads(result.as_numpy("REQUEST")[0])
    assert (facts["request_id"], facts["inputs"]) == ("r", ["IN"])


def test_reserved_parameters_are_refused_by_the_client(client: FourClient) -> None:
    """The client's own check, so that the test above is known to have sent what it says."""
    with pytest.raises(Exception, match="reserved"):
        client.infer("parameters", [client.tensor("IN", "FP32", [0.0])], parameters={"sequence_id": 1})


def test_timeout_and_priority_are_reported(client: FourClient) -> None:
    result = client.infer("parameters", [client.tensor("IN", "FP32", [0.0])], timeout=5_000_000, priority=2)
    assert json.loads(result.as_numpy("REQUEST")[0])["timeout"] == 5_000_000


@pytest.mark.parametrize("version", ["1", "3"])
def test_a_version(client: FourClient, version: str) -> None:
    result = client.infer("versioned", [client.tensor("IN", "FP32", [0.0])], model_version=version)
    assert result.as_numpy("VERSION").tolist() == [version.encode()]


def test_without_a_version_the_highest_answers(client: FourClient) -> None:
    result = client.infer("versioned", [client.tensor("IN", "FP32", [0.0])])
    assert result.as_numpy("VERSION").tolist() == [b"3"]


def test_optional_inputs(client: FourClient) -> None:
    text = client.tensor("text_input", "BYTES", [[b"ab"]])
    assert client.infer("text", [text]).as_numpy("text_output").tolist() == [[b"ab"]]
    both = [text, client.tensor("repetitions", "INT32", [[3]])]
    assert client.infer("text", both).as_numpy("text_output").tolist() == [[b"ababab"]]


def test_ensembles(client: FourClient) -> None:
    result = client.infer("diamond", [client.tensor("IN", "INT32", LEFT)])
    np.testing.assert_array_equal(result.as_numpy("SUM"), LEFT * 18)
    np.testing.assert_array_equal(result.as_numpy("DIFFERENCE"), LEFT * 0)
    sent = np.float32([[1.5, 2.5], [3.5, 4.5]])
    chained = client.infer("chain", [client.tensor("INPUT0", "FP32", sent)])
    np.testing.assert_array_equal(chained.as_numpy("OUTPUT0"), sent)
