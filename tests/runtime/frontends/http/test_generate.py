"""Generate, with one answer or a stream of them."""

import httpx
import pytest
from tests.runtime.frontends.conftest import Running

from argosy_runtime.protocol.orca import CacheLoad


def test_generate(client: httpx.Client, running: Running) -> None:
    reply = client.post("/v2/models/text/generate", json={"text": "hi", "id": "x", "parameters": {"tokens": 3}})
    assert reply.content == b'{"OUT_text":"hi","id":"x","model_name":"text","model_version":"1"}'
    assert running.plane.requests[0].parameters == {"id": "x", "tokens": 3}
    reply = client.post("/v2/models/repeat/generate", json={"IN": 2})
    assert reply.json()["error"].startswith("generate expects model to produce exactly 1 response")
    reply = client.post("/v2/models/fails/generate", json={"IN": 2})
    assert (reply.status_code, reply.json()) == (400, {"error": "the model broke"})


def test_generate_stream(client: httpx.Client) -> None:
    reply = client.post("/v2/models/repeat/generate_stream", json={"IN": 2})
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.content == (
        b'data: {"OUT":0,"model_name":"repeat","model_version":"1"}\n\n'
        b'data: {"OUT":1,"model_name":"repeat","model_version":"1"}\n\n'
    )
    reply = client.post("/v2/models/repeat/generate_stream", json={"IN": 0})
    assert (reply.status_code, reply.content) == (200, b"")
    reply = client.post("/v2/models/fails/generate_stream", json={"IN": 1})
    assert (reply.status_code, reply.content) == (400, b'data: {"error":"the model broke"}\n\n')
    reply = client.post("/v2/models/busy/generate_stream", json={"IN": 1})
    assert (reply.status_code, reply.json()) == (503, {"error": "Exceeds maximum queue size"})


@pytest.mark.parametrize("path", ["text/generate", "text/generate_stream"])
def test_the_load_of_caches_is_a_header_where_it_is_requested(
    client: httpx.Client, running: Running, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = {"text": CacheLoad(1.0, 16)}
    monkeypatch.setattr(running.plane, "cache_load", loads.get, raising=False)
    url = f"/v2/models/{path}"
    assert "endpoint-load-metrics" not in client.post(url, json={"text": "hi"}).headers
    for requested, expected in (
        ("text", "TEXT named_metrics.kv_cache_utilization=1.000000, named_metrics.max_token_capacity=16"),
        ("json", 'JSON {"named_metrics":{"kv_cache_utilization":1.0,"max_token_capacity":16}}'),
        ("else", None),
    ):
        reply = client.post(url, json={"text": "hi"}, headers={"endpoint-load-metrics-format": requested})
        assert reply.status_code == 200
        assert reply.headers.get("endpoint-load-metrics") == expected
