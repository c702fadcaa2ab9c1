"""Requests that end tritonserver 2.51: Argosy answers them, and goes on serving."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.differential.cases import http_python
from tests.differential.cases.grpc_infer import request, text
from tests.differential.cases.http_infer import floats
from tests.differential.deviations import owed
from tests.differential.grpc_cases import GrpcCase, answer
from tests.differential.http_calls import Call, Case, infer, post, send, tensor
from tests.differential.http_cases import answers
from tests.differential.oracle import recorded
from tests.peers.server import Server

STATUS = {"triton_grpc_error": "true"}
BYTES_CLASSES = "class result not available for output due to unsupported type 'BYTES'"


@pytest.fixture
def surviving(started: Callable[[str], Server]) -> Iterator[Server]:
    """Yield Argosy's server, which must still serve when the test ends."""
    server = started("argosy")
    yield server
    assert server.alive()
    assert send(server.http, infer("identity", floats([1, 1], [1])))["status"] == 200


def _refusal(answer: dict[str, Any]) -> tuple[int, str]:
    return answer["status"], answer["body"]["error"]


@pytest.mark.parametrize(
    ("message", "code", "details", "messages"),
    [
        (text("failing", "HOW", "error"), "INTERNAL", "an error of the model's", 0),
        (text("failing", "HOW", "NOT_FOUND"), "NOT_FOUND", "this is NOT_FOUND", 0),
        (text("words", "text_input", "fail"), "INTERNAL", "the word was fail", 0),
        (text("words", "text_input", "a fail b c"), "INTERNAL", "the word was fail", 1),
    ],
    ids=["plain model", "code of the model's", "stream", "stream with more to come"],
)
def test_an_error_closes_the_stream_that_asks_for_it(
    surviving: Server, message: dict[str, Any], code: str, details: str, messages: int
) -> None:
    reply = answer(surviving.grpc, GrpcCase("error", "ModelStreamInfer", [message], STATUS))
    assert (reply["code"], reply["details"], len(reply["messages"])) == (code, details, messages)


@pytest.mark.parametrize("case", http_python.RAISING_CASES, ids=lambda case: str(case.name))
def test_calls_of_a_model_that_fail_in_the_server(surviving: Server, case: Case) -> None:
    topic = "http_python_raising"
    assert answers(surviving.http, case) == owed("argosy", topic, case.name, recorded(topic)[case.name])


def test_classes_of_bytes_over_http(surviving: Server) -> None:
    outputs = [{"name": "OUTPUT0", "parameters": {"classification": 1}}]
    call = infer("bytes_identity", tensor("INPUT0", [1, 1], "BYTES", ["a"]), outputs=outputs)
    assert _refusal(send(surviving.http, call)) == (400, BYTES_CLASSES)


@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer"])
def test_classes_of_bytes_over_grpc(surviving: Server, method: str) -> None:
    outputs = [{"name": "OUTPUT0", "parameters": {"classification": {"int64_param": 1}}}]
    message = text("bytes_identity", "INPUT0", "a", outputs=outputs)
    message["inputs"][0]["shape"] = [1, 1]
    reply = answer(surviving.grpc, GrpcCase("classes", method, [message]))
    in_band = [message.get("error_message") for message in reply["messages"]]
    assert BYTES_CLASSES in (reply["details"], *in_band)


@pytest.mark.parametrize("opening", ["[", '{"ready":', '{"parameters":{"a":'])
@pytest.mark.parametrize("path", ["index", "models/text/load", "models/text/unload"])
def test_deeply_nested_json(surviving: Server, path: str, opening: str) -> None:
    call = post(f"/v2/repository/{path}", opening * 50_000)
    status, message = _refusal(send(surviving.http, call))
    assert status == 500
    assert message.startswith("failed to parse the request JSON buffer: ")


def test_a_load_file_too_large(surviving: Server) -> None:
    content = b'{"parameters":{"config":"{}","file:1/model.py":"' + b"A" * (65 << 20) + b'"}}'
    status, message = _refusal(send(surviving.http, Call("POST", "/v2/repository/models/text/load", content)))
    assert status == 400
    assert "exceeds the maximum allowed input size of 67108864 bytes" in message


def test_a_wrong_request_on_a_stream_closed_by_errors(surviving: Server) -> None:
    reply = answer(
        surviving.grpc, GrpcCase("wrong", "ModelStreamInfer", [request("identity"), request("identity")], STATUS)
    )
    assert reply["code"] == "INVALID_ARGUMENT"


def test_a_weight_beyond_any_number(surviving: Server) -> None:
    call = infer("identity", floats([1, 1], [1]))
    weighted = replace(call, headers=(("Accept-Encoding", "gzip;q=1e999, deflate;q=0.1"),))
    assert send(surviving.http, weighted)["encoding"] == "deflate"
