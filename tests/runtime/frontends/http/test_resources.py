"""Endpoints other than inference: health, metadata, statistics, loads, log, shared memory, metrics."""

import base64
import logging

import httpx
import pytest
from tests.runtime.frontends.conftest import FakePlane, Running, client_regions
from tests.runtime.frontends.http.asking import ECHO

from argosy_runtime.frontends.http import management
from argosy_runtime.frontends.http.app import HttpApp, HttpOptions
from argosy_runtime.frontends.http.wire.application import Fixed
from argosy_runtime.frontends.http.wire.heads import read_head
from argosy_runtime.frontends.metrics import MetricsApp


def test_version_reaches_the_plane_without_zeros(client: httpx.Client, running: Running) -> None:
    assert client.post("/v2/models/echo/versions/007/infer", json=ECHO).status_code == 200
    assert running.plane.requests[0].model_version == "7"


def test_a_version_of_thousands_of_digits_is_passed_on(client: httpx.Client, running: Running) -> None:
    assert client.post(f"/v2/models/echo/versions/00{'9' * 5000}/infer", json=ECHO).status_code == 200
    assert running.plane.requests[0].model_version == "9" * 5000


def test_percent_encoded_names_are_decoded(client: httpx.Client) -> None:
    reply = client.get("/v2/models/my%20model%2Fx")
    assert reply.json() == {"error": "Request for unknown model: 'my model/x' is not found"}


def test_log_settings_change_and_are_reported(client: httpx.Client, running: Running) -> None:
    everything = {
        "log_file": "",
        "log_info": True,
        "log_warning": True,
        "log_error": True,
        "log_verbose_level": 0,
        "log_format": "default",
    }
    assert client.get("/v2/logging").json() == everything
    change = {"log_info": False, "log_verbose_level": None, "log_format": "ISO8601", "no such setting": 1}
    reported = client.post("/v2/logging", json=change).json()
    assert reported == {**everything, "log_info": False, "log_format": "ISO8601"}
    assert list(reported) == list(everything)
    assert not running.plane.log.lets_through(logging.INFO)


@pytest.mark.parametrize("kind", ["system", "cuda"])
def test_no_region_is_registered_and_all_can_be_unregistered(client: httpx.Client, running: Running, kind: str) -> None:
    assert client.get(f"/v2/{kind}sharedmemory/status").json() == []
    running.plane.regions = client_regions(allowed=True)
    for path in ("unregister", "region/r/unregister"):
        reply = client.post(f"/v2/{kind}sharedmemory/{path}")
        assert (reply.status_code, reply.content) == (200, b"")


def test_health(client: httpx.Client, running: Running) -> None:
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/echo/ready"):
        reply = client.get(path)
        assert (reply.status_code, reply.content) == (200, b"")
    running.plane.is_ready = False
    reply = client.get("/v2/health/ready")
    assert (reply.status_code, reply.content) == (400, b"")


def test_metadata_config_statistics_index(client: httpx.Client) -> None:
    assert client.get("/v2").json() == {
        "name": "argosy",
        "version": "0.1.0",
        "extensions": ["classification"],
    }
    metadata = client.get("/v2/models/echo").json()
    assert metadata["inputs"] == [{"name": "IN", "datatype": "FP32", "shape": [-1, -1]}]
    config = client.get("/v2/models/echo/versions/1/config").json()
    assert (config["name"], config["max_batch_size"], config["instance_group"]) == ("echo", 8, [])
    stats = client.get("/v2/models/echo/stats").json()["model_stats"]
    assert stats[0]["inference_count"] == 0
    assert stats[0]["inference_stats"]["queue"] == {"count": 0, "ns": 0}
    assert len(client.get("/v2/models/stats").json()["model_stats"]) > 1
    assert client.post("/v2/repository/index").json() == [
        {"name": "echo", "version": "1", "state": "READY"},
        {"name": "never"},
    ]
    assert len(client.post("/v2/repository/any/index", json={"ready": True}).json()) == 1


def test_load_and_unload(client: httpx.Client, running: Running) -> None:
    parameters = {"config": "{}", "file:1/model.onnx": base64.b64encode(b"\x00onnx").decode()}
    reply = client.post("/v2/repository/models/m/load", json={"parameters": parameters})
    assert (reply.status_code, reply.content) == (200, b"")
    assert running.plane.loaded == [("m", "{}", {"file:1/model.onnx": b"\x00onnx"})]
    client.post("/v2/repository/models/m/unload", json={"parameters": {"unload_dependents": True}})
    client.post("/v2/repository/models/m/unload")
    assert running.plane.unloaded == [("m", True), ("m", False)]


def test_a_file_longer_than_triton_decodes_is_refused(
    client: httpx.Client, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(management, "MOST_LENGTH", 7)
    for name, text in (("file:1/a", "AAAA"), ("file:1/b", "AAAAAAAA")):
        reply = client.post("/v2/repository/models/m/load", json={"parameters": {"config": "{}", name: text}})
    assert reply.status_code == 400
    assert reply.json() == {"error": "'file:1/b' exceeds the maximum allowed data size limit INT_MAX"}
    assert [files for _, _, files in running.plane.loaded] == [{"file:1/a": bytes(3)}]


def test_metrics_are_on_the_port_of_requests_as_well(client: httpx.Client) -> None:
    for path in ("/metrics", "/metrics/"):
        reply = client.get(path)
        assert (reply.status_code, reply.content) == (200, b"nv_inference_count 1\n")
    assert client.post("/metrics").status_code == 405


def test_without_metrics_there_is_no_such_path() -> None:
    head = read_head(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
    assert head is not None
    assert isinstance(HttpApp(FakePlane(), HttpOptions(metrics=False)).handler(head), Fixed)
    assert isinstance(HttpApp(FakePlane(), HttpOptions()).handler(head), MetricsApp)


def test_metrics(running: Running) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{running.metrics}") as client:
        reply = client.get("/metrics")
        assert (reply.status_code, reply.content) == (200, b"nv_inference_count 1\n")
        assert reply.headers["content-type"] == "text/plain; charset=utf-8"
        assert client.post("/metrics").status_code == 405
        assert client.get("/other").status_code == 404
