"""Requests that are like others before them are answered as the ordinary way answers them, byte for byte."""

# Requests stand whole on their line.
# ruff: noqa: E501

import asyncio
import json
import re
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.properties import examples
from tests.runtime.frontends.conftest import FakePlane
from tests.runtime.frontends.http.wire import Wire

from argosy_runtime.errors import DecoupledModelError, internal, not_found
from argosy_runtime.frontends.http.app import HttpApp, HttpOptions
from argosy_runtime.frontends.http.infer import InferHandler
from argosy_runtime.frontends.http.request_template import TemplateHandler
from argosy_runtime.frontends.http.wire.application import Handler
from argosy_runtime.frontends.http.wire.heads import Head, read_head
from argosy_runtime.messages import (
    Deliver,
    InferRequest,
    InferResponse,
    RequestTemplate,
    ResponseTemplate,
    Submission,
)
from argosy_runtime.tensors import Data


class Over:
    def cancel(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass


class EchoPlane(FakePlane):
    """Answers at once with its inputs; where it `templates`, as a model's process does: by templates and raw tensors."""

    def __init__(self, templates: bool) -> None:
        super().__init__()
        self._templates = templates
        self._responses: dict[RequestTemplate, ResponseTemplate] = {}
        self.templated = 0

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        self.requests.append(request)
        self.templated += request.template is not None
        if request.model_name == "none":
            raise not_found("Request for unknown model: 'none' is not found")
        if request.model_name == "repeat":
            raise DecoupledModelError
        deliver(self._answer(request))
        return Over()

    def _answer(self, request: InferRequest) -> InferResponse:
        if request.model_name == "fails":
            return InferResponse("fails", "1", request.id, error=internal("the model broke"))
        desired = request.requested_outputs or tuple(request.inputs)
        outputs = [request.inputs[name] for name in desired if name in request.inputs]
        parameters = {} if request.priority == 0 else {"urgent": request.priority}
        template = request.template
        if not self._templates or template is None:
            return InferResponse(request.model_name, "1", request.id, outputs, dict(parameters))
        if template not in self._responses:
            self._responses[template] = ResponseTemplate([tensor.spec() for tensor in outputs], dict(parameters))
        response = self._responses[template].response([tensor.data for tensor in outputs])
        response.model_name, response.model_version, response.id = request.model_name, "1", request.id
        return response


class OrdinaryApp(HttpApp):
    """Remembers nothing of inference requests."""

    def handler(self, head: Head) -> Handler:
        handler = super().handler(head)
        return handler._ordinary if isinstance(handler, TemplateHandler) else handler


SIZES = {"FP32": 4, "INT64": 8, "UINT8": 1, "FP16": 2, "NOPE": 4}


@st.composite
def tensors(draw: st.DrawFn, name: str) -> tuple[dict[str, Any], bytes]:
    datatype = draw(st.sampled_from(("FP32", "INT64", "UINT8", "FP16", "BYTES", "NOPE")))
    shape = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
    count = int(np.prod(shape))
    document: dict[str, Any] = {"name": name, "datatype": datatype, "shape": shape}
    if draw(st.integers(0, 4)) == 0:
        document["data"] = draw(st.just([1] * count) | st.just(["a"] * count))
        return document, b""
    if datatype == "BYTES":
        data = b"".join([len(text).to_bytes(4, "little") + text for text in draw(strings(count))])
    else:
        size = count * SIZES[datatype]
        data = draw(st.binary(min_size=size, max_size=size))
    document["parameters"] = {"binary_data_size": len(data) + draw(st.sampled_from((0,) * 8 + (1, -1)))}
    return document, data


def strings(count: int) -> st.SearchStrategy[list[bytes]]:
    return st.lists(st.binary(max_size=3), min_size=count, max_size=count)


OUTPUT = st.fixed_dictionaries(
    {"name": st.sampled_from(("IN", "A", "B"))},
    optional={
        "parameters": st.fixed_dictionaries(
            {}, optional={"binary_data": st.booleans(), "classification": st.integers(0, 2)}
        )
    },
)
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "binary_data_output": st.booleans(),
        "priority": st.integers(0, 2),
        "sequence_id": st.integers(0, 2) | st.just("s"),
        "mine": st.booleans() | st.just(float("nan")) | st.text(max_size=3),
        "triton_x": st.just(1),
        "id": st.just("x"),
    },
)
SEQUENCE = rb'"sequence_id":\s?[12]'
# As client libraries write sequences, and in other ways.
SEQUENCES = st.sampled_from(
    [
        b'"sequence_id":%b,"sequence_start":%b,"sequence_end":%b%b' % (*parts, more)
        for parts in product((b"1", b"23", b"0", b"01", b"-4", b"true", b"1.5"), (b"true", b"false"), (b"true", b"1"))
        for more in (b"", b"", b',"sequence_id":9', b',"sequence_start":false')
    ]
)
IDS = st.sampled_from(("", "7", "a b", "é", "\x7f", '"', "\\", "\n", "\u2028", "𝄞")) | st.text(max_size=4)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """Draw a path, and requests that differ only in their ids and their tensors' bytes."""
    model = draw(st.sampled_from(("echo", "echo", "echo", "any", "none", "repeat", "fails")))
    version = draw(st.sampled_from(("", "", "/versions/1")))
    made = [draw(tensors(name)) for name in draw(st.sampled_from((("IN",), ("A", "B"), ("IN", "IN"), ("id",), ())))]
    document: dict[str, Any] = {"inputs": [tensor for tensor, _ in made]}
    if draw(st.booleans()):
        document["parameters"] = draw(PARAMETERS)
    if draw(st.booleans()):
        document["outputs"] = draw(st.lists(OUTPUT, max_size=2))
    data = b"".join(data for _, data in made)
    ascii_only, spaced = draw(st.booleans()), draw(st.booleans())
    bodies = []
    for request_id in draw(st.lists(st.none() | IDS, min_size=2, max_size=4)):
        placed = draw(st.integers(0, 5))
        full = {"id": request_id, **document} if placed else {**document, "id": request_id}
        if request_id is None:
            del full["id"]
        text = json.dumps(full, ensure_ascii=ascii_only, separators=(",", ": " if spaced else ":"))
        encoded = text.encode("utf-8", "surrogatepass")
        tail = draw(st.just(data) | st.binary(min_size=len(data), max_size=len(data)) | st.just(data[:-1]))
        encoded = re.sub(SEQUENCE, draw(SEQUENCES), encoded)
        split = len(encoded) + draw(st.sampled_from((0,) * 10 + (1, -1)))
        bodies.append(_request(f"/v2/models/{model}{version}/infer", encoded + tail, str(split)))
    return model, bodies


def _request(path: str, body: bytes, split: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nInference-Header-Content-Length: {split}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def answers(app: HttpApp, sent: list[bytes], cuts: list[int]) -> bytes:
    """Return the answers on one connection to pipelined requests, cut into pieces."""
    full = b"".join(sent)
    locations = sorted({cut % (len(full) + 1) for cut in cuts} | {0, len(full)})

    async def round_trip() -> bytes:
        wire = Wire(app)
        for begin, end in pairwise(locations):
            wire.feed(full[begin:end])
            await asyncio.sleep(0)
        for _ in sent:
            await asyncio.sleep(0)
        return wire.written

    return asyncio.run(round_trip())


def seen(plane: EchoPlane) -> list[tuple[object, ...]]:
    return [
        (
            *(request.model_name, request.model_version, request.id, request.requested_outputs),
            *(repr(request.parameters), request.sequence_id, request.priority),
            *(request.sequence_start, request.sequence_end),
            [(tensor.name, tensor.datatype, tensor.shape, bytes(tensor.data)) for tensor in request.inputs.values()],
        )
        for request in plane.requests
    ]


_SAME_ID_TWICE = (
    b'{"id":"a","id":"b","inputs":[{"name":"IN","datatype":"UINT8","shape":[1],"parameters":{"binary_data_size":1}}]}'
)


@examples(300)
@given(requests(), st.lists(st.integers(0, 1 << 16), max_size=3))
@example(("echo", [_request("/v2/models/echo/infer", text + b"\1", str(len(text))) for text in (
    _SAME_ID_TWICE.replace(b'"a"', b'"b"'), _SAME_ID_TWICE, _SAME_ID_TWICE.replace(b',"id"', b',"\\u0069d"'),
)]), [])  # fmt: skip
def test_the_short_way_answers_as_the_ordinary_one(made: tuple[str, list[bytes]], cuts: list[int]) -> None:
    _, sent = made
    ordinary = EchoPlane(templates=False)
    options = HttpOptions(max_input_size=1 << 20)
    # What it answers once it knows the request matters as much as what it answers first.
    expected = answers(OrdinaryApp(ordinary, options), sent * 2, [])
    for templates in (True, False):
        plane = EchoPlane(templates)
        assert answers(HttpApp(plane, options), sent * 2, cuts) == expected
        assert seen(plane) == seen(ordinary)
    assert ordinary.templated == 0


ONE = b'{"id":"%b","inputs":[{"name":"IN","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}],"parameters":{"binary_data_output":true}}'


def test_the_common_request_is_planned_and_its_tensors_are_not_decoded() -> None:
    plane = EchoPlane(templates=True)
    sent = []
    for request_id in (b"1", b"22", b""):
        text = ONE % request_id
        sent.append(_request("/v2/models/echo/infer", text + request_id.rjust(8), str(len(text))))
    back = answers(HttpApp(plane, HttpOptions()), sent, [])
    assert plane.templated == 3
    assert len({request.template for request in plane.requests}) == 1
    expected = b'{"id":"22","model_name":"echo","model_version":"1","outputs":[{"name":"IN","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]}'
    assert back.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert b"Inference-Header-Content-Length: %d\r\n" % len(expected) in back
    assert expected + b"      22" in back
    assert expected.replace(b'"id":"22",', b"") + b" " * 8 in back


def test_requests_of_all_sequences_have_one_template() -> None:
    plane = EchoPlane(templates=True)
    sent = []
    steps = (b'1,"sequence_start":true,"sequence_end":false', b'22,"sequence_start":false,"sequence_end":true')
    for step in (*steps, b'0,"sequence_start":false,"sequence_end":false'):
        text = ONE.replace(b'{"binary_data_output"', b'{"sequence_id":%b,"binary_data_output"' % step) % b"1"
        sent.append(_request("/v2/models/echo/infer", text + bytes(8), str(len(text))))
    answers(HttpApp(plane, HttpOptions()), sent, [])
    first, second, none = plane.requests
    assert (first.sequence_id, first.sequence_start, first.sequence_end) == (1, True, False)
    assert (second.sequence_id, second.sequence_start, second.sequence_end) == (22, False, True)
    assert none.sequence_id == 0
    assert first.template is second.template is not none.template


def test_a_sequence_of_an_input_is_none_of_the_request() -> None:
    plane = EchoPlane(templates=True)
    sent = []
    for number in (b"1", b"2"):
        own = b'{"sequence_id":%b,"sequence_start":true,"sequence_end":true,"binary_data_size"' % number
        text = ONE.replace(b'{"binary_data_size"', own) % b"1"
        sent.append(_request("/v2/models/echo/infer", text + bytes(8), str(len(text))))
    answers(HttpApp(plane, HttpOptions()), sent, [])
    assert [request.sequence_id for request in plane.requests] == [0, 0]


def test_a_long_body_is_not_copied_on_its_way() -> None:
    plane = EchoPlane(templates=True)
    data = bytes(range(256)) * 1024
    text = (ONE % b"1").replace(b"[1,2]", b"[1,65536]").replace(b":8}", b":262144}")
    sent = _request("/v2/models/echo/infer", text + data, str(len(text)))
    assert answers(HttpApp(plane, HttpOptions()), [sent], [300, 200_000]).endswith(data)
    raw: Data = plane.requests[0].raw[0]  # type: ignore[index]
    assert isinstance(raw, memoryview)
    assert isinstance(raw.obj, np.ndarray)


def test_a_tensor_may_be_called_id() -> None:
    plane = EchoPlane(templates=True)
    text = ONE.replace(b'"IN"', b'"id"') % b"1"
    answers(HttpApp(plane, HttpOptions()), [_request("/v2/models/echo/infer", text + bytes(8), str(len(text)))], [])
    assert plane.templated == 1


def test_no_more_plans_are_recorded_than_a_server_can_bear() -> None:
    plane = EchoPlane(templates=True)
    sent = []
    for number in (*range(1025), 1, 0):
        text = ONE.replace(b'{"binary_data_output"', b'{"mine":%d,"binary_data_output"' % number) % b"1"
        sent.append(_request("/v2/models/echo/infer", text + bytes(8), str(len(text))))
    answers(HttpApp(plane, HttpOptions()), sent, [])
    assert plane.templated == 1027
    assert plane.requests[1025].template is plane.requests[1].template
    assert plane.requests[1026].template is not plane.requests[0].template


def test_another_version_answers_under_its_own_name() -> None:
    class Renewed(EchoPlane):
        def _answer(self, request: InferRequest) -> InferResponse:
            response = super()._answer(request)
            response.model_version = str(len(self.requests))
            return response

    text = ONE % b"1"
    sent = _request("/v2/models/echo/infer", text + bytes(8), str(len(text)))
    back = answers(HttpApp(Renewed(templates=True), HttpOptions()), [sent] * 3, [])
    assert [back.count(b'"model_version":"%d"' % number) for number in (1, 2, 3)] == [1, 1, 1]


@pytest.mark.parametrize("headers", ["Accept-Encoding: gzip\r\n", "Fwd-X: 1\r\n", "Content-Encoding: gzip\r\n"])
def test_what_the_head_asks_for_besides_takes_the_ordinary_way(headers: str) -> None:
    app = HttpApp(EchoPlane(templates=True), HttpOptions(header_forward_pattern="fwd-"))
    fields = dict([header.lower().encode().split(b": ") for header in headers.split("\r\n") if header])
    head = {b"content-length": b"108", b"inference-header-content-length": b"100"}
    assert isinstance(app.handler(Head("POST", "/v2/models/echo/infer", head)), TemplateHandler)
    assert isinstance(app.handler(Head("POST", "/v2/models/echo/infer", head | fields)), InferHandler)


def test_a_length_of_thousands_of_digits_takes_the_ordinary_way() -> None:
    app = HttpApp(EchoPlane(templates=True), HttpOptions())
    head = {b"content-length": b"108", b"inference-header-content-length": b"9" * 5000}
    assert isinstance(app.handler(Head("POST", "/v2/models/echo/infer", head)), InferHandler)


def test_the_values_of_headers_are_utf_8_unless_their_bytes_are_none() -> None:
    head = read_head("POST / HTTP/1.1\r\nA: é\r\nB: ".encode() + b"\xe9\r\n\r\n")
    assert head is not None
    assert list(head.fields()) == [("A", "é"), ("B", "é")]


def test_an_error_of_a_planned_request_is_reported_as_any() -> None:
    class Failing(EchoPlane):
        def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
            raise internal("full")

    text = ONE % b"1"
    back = answers(
        HttpApp(Failing(templates=True), HttpOptions()),
        [_request("/v2/models/echo/infer", text + bytes(8), str(len(text)))],
        [],
    )
    assert back.startswith(b"HTTP/1.1 500 ")
    assert back.endswith(b'{"error":"full"}')
