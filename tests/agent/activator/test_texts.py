"""The pure parts: heads, paths, messages, metrics."""

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tritonclient.grpc import service_pb2 as pb

from argosy_agent.activator.grpc.messages import MessageError, enum_message, model_of, name_message
from argosy_agent.activator.http.messages import HeadError, parse_head
from argosy_agent.activator.http.paths import ParsedPath, parse_target
from argosy_agent.activator.members import ASIDE_S, Servers
from argosy_agent.activator.metrics import Metrics
from argosy_agent.activator.request_kind import RequestKind
from argosy_agent.contract.activation import Endpoint


@pytest.mark.parametrize(
    ("target", "parsed"),
    [
        ("/v2/models/m/infer", ParsedPath(RequestKind.QUEUE, "m")),
        ("/v2/models/m/versions/3/infer", ParsedPath(RequestKind.QUEUE, "m")),
        ("/v2/models/a%20b/generate_stream?x=/v2", ParsedPath(RequestKind.QUEUE, "a b")),
        ("http://host:8000/v2/models/m", ParsedPath(RequestKind.QUEUE, "m")),
        ("/v2/models/m/config", ParsedPath(RequestKind.QUEUE, "m")),
        ("/v2/models/m/versions/1/ready", ParsedPath(RequestKind.READY, "m")),
        ("/v2/models/m/stats", ParsedPath(RequestKind.PASS, "m")),
        ("/v2/models/stats", ParsedPath(RequestKind.OTHER)),
        ("/v2/models/m/trace/setting", ParsedPath(RequestKind.PASS, "m")),
        ("/v2/models/", ParsedPath(RequestKind.OTHER)),
        ("/v2/repository/index", ParsedPath(RequestKind.OTHER)),
        ("/v2", ParsedPath(RequestKind.SERVER)),
        ("/v2/", ParsedPath(RequestKind.SERVER)),
        ("/v2/health/live", ParsedPath(RequestKind.LIVE)),
        ("/v2/health/ready", ParsedPath(RequestKind.SERVER_READY)),
        ("/", ParsedPath(RequestKind.OTHER)),
        ("*", ParsedPath(RequestKind.OTHER)),
    ],
)
def test_what_a_path_asks_for(target: str, parsed: ParsedPath) -> None:
    assert parse_target(target) == parsed


@given(st.text())
def test_any_target_asks_for_something(target: str) -> None:
    assert parse_target(target).kind in RequestKind


def test_a_head_is_passed_on_as_it_came_but_that_the_connection_ends() -> None:
    head = parse_head(b"POST /v2 HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nX-A: 1\r\nX-A:  \xe9 \r\n\r\n")
    assert head.request == ("POST", "/v2")
    assert head.closing() == b"POST /v2 HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nX-A: \xe9\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "data", [b"\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/2\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
             b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", b"\x16\x03\x01\x02\r\n\r\n"]
)  # fmt: skip
def test_what_is_no_request_is_reported(data: bytes) -> None:
    with pytest.raises(HeadError, match="is no"):
        _ = parse_head(data).request


@pytest.mark.parametrize(("line", "interim"), [("HTTP/1.1 100 Continue", True), ("HTTP/1.1 200 OK", False)])
def test_an_interim_head_is_reported(line: str, interim: bool) -> None:
    assert parse_head(line.encode() + b"\r\n\r\n").is_interim is interim


def test_what_is_no_answer_is_reported() -> None:
    with pytest.raises(HeadError, match="status line"):
        _ = parse_head(b"SSH-2.0 x\r\n\r\n").is_interim


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=200)


@given(TEXTS, TEXTS, st.lists(st.binary(max_size=300), max_size=3))
def test_the_model_of_a_message_is_the_one_that_protobuf_reads(name: str, version: str, data: list[bytes]) -> None:
    request = pb.ModelInferRequest(model_name=name, model_version=version, raw_input_contents=data)
    request.parameters["n"].int64_param = -1
    assert model_of(request.SerializeToString()) == name
    assert model_of(pb.ModelReadyRequest(name=name, version=version).SerializeToString()) == name


@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_are_reported_or_read(data: bytes) -> None:
    with suppress(MessageError):
        assert isinstance(model_of(data), str)


def test_messages_of_our_own_are_what_protobuf_reads() -> None:
    assert pb.ServerLiveResponse.FromString(enum_message(1)).live
    assert pb.ServerMetadataResponse.FromString(name_message("argosy")).name == "argosy"


def test_servers_take_turns_and_one_set_aside_is_tried_a_while_later() -> None:
    a, b = Endpoint("a", 1, 2), Endpoint("b", 1, 2)
    servers = Servers()
    assert [servers.pick((a, b), 0.0) for _ in range(4)] in ([a, b, a, b], [b, a, b, a])
    servers.set_aside(a, 1.0)
    assert {servers.pick((a, b), 1.5) for _ in range(3)} == {b}
    assert servers.pick((a,), 1.5) is None
    assert servers.next_try((a, b)) == 1.0 + ASIDE_S
    assert servers.pick((a,), 1.0 + ASIDE_S) == a
    assert servers.next_try((b,)) is None


def test_metrics_are_reported_by_their_names_and_kinds() -> None:
    text = (Path(__file__).parents[3] / "docs/how-to/scale-to-zero.md").read_text()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", Metrics().text(), re.MULTILINE):
        assert re.search(rf"`{name}` \({kind}\b", " ".join(text.split())), name


def test_metrics_are_such_as_prometheus_reads() -> None:
    metrics = Metrics()
    metrics.queued({'a"\n\\': 2})
    metrics.waited("m", 0.1)
    metrics.waited("m", 1000.0)
    metrics.queued({"m": 1})
    metrics.ended("m", "passed")
    families = {family.name: family.samples for family in text_string_to_metric_families(metrics.text())}
    queued = {sample.labels["model"]: sample.value for sample in families["argosy_activator_held_requests"]}
    assert queued == {'a"\n\\': 0.0, "m": 1.0}
    (ended,) = families["argosy_activator_requests"]
    assert (ended.labels, ended.value) == ({"model": "m", "outcome": "passed"}, 1.0)
    buckets = {
        sample.labels["le"]: sample.value
        for sample in families["argosy_activator_hold_duration_seconds"]
        if sample.name.endswith("_bucket")
    }
    assert (buckets["0.5"], buckets["300.0"], buckets["+Inf"]) == (1.0, 1.0, 2.0)
