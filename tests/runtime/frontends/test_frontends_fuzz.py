"""Any body to any endpoint is answered, by something that is meant: no fault of the front end's own, and no wait."""

# An error is one of two outcomes, and not expected.
# ruff: noqa: PT017

import json

import grpc
import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.mutations import mutated, texts
from tests.properties import examples
from tests.runtime.frontends.conftest import Running, client_regions
from tritonclient.grpc import service_pb2 as pb

ONCE = {"suppress_health_check": [HealthCheck.function_scoped_fixture]}
INPUT = {"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
PLACED = {
    "name": "IN",
    "datatype": "FP32",
    "shape": [1, 2],
    "parameters": {"shared_memory_region": "r", "shared_memory_byte_size": 8},
}
BODIES = {
    "/v2/models/echo/infer": {"id": "i", "inputs": [INPUT], "outputs": [{"name": "OUT", "parameters": {}}]},
    "/v2/models/any/infer": {"inputs": [PLACED], "parameters": {"binary_data_output": True}},
    "/v2/models/text/generate": {"text": "a", "parameters": {"x": 1}},
    "/v2/models/text/generate_stream": {"text": ["a"], "outputs": ["OUT_text"]},
    "/v2/repository/index": {"ready": True},
    "/v2/repository/models/m/load": {"parameters": {"config": "{}", "file:1/model.py": "aGk="}},
    "/v2/repository/models/m/unload": {"parameters": {"unload_dependents": True}},
    "/v2/logging": {"log_info": True, "log_verbose_level": 1, "log_format": "default", "log_file": ""},
    "/v2/systemsharedmemory/region/r/register": {"key": "/argosy-no-such-object", "byte_size": 8, "offset": 0},
    "/v2/cudasharedmemory/region/g/register": {"raw_handle": {"b64": "A" * 88}, "byte_size": 8, "device_id": 0},
}
SERVICE = pb.DESCRIPTOR.services_by_name["GRPCInferenceService"]
UNARY = [method.name for method in SERVICE.methods if method.name != "ModelStreamInfer"]


@pytest.mark.parametrize("path", BODIES)
def test_bodies(running: Running, path: str) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{running.http}", timeout=60) as client:

        @examples(60, **ONCE)
        @given(texts(mutated(st.just(BODIES[path]))), st.sampled_from(["", "0", "5", "-1", "9" * 30, "x", "1.5", "+3"]))
        def ask(body: bytes, header_length: str) -> None:
            running.plane.reset()
            running.plane.regions = client_regions(allowed=True)
            headers = {"inference-header-content-length": header_length} if header_length else {}
            reply = client.post(path, content=body, headers=headers)
            _check(reply)

        ask()


def _check(reply: httpx.Response) -> None:
    if reply.status_code == 200:
        return
    assert reply.status_code in (400, 404, 500, 501, 503)
    error = json.loads(reply.text.removeprefix("data: "))["error"]
    assert "in the HTTP front end" not in error


@pytest.mark.parametrize("method", UNARY)
def test_messages(running: Running, method: str) -> None:
    running.plane.regions = client_regions(allowed=True)
    with grpc.insecure_channel(f"127.0.0.1:{running.grpc}") as channel:
        call = channel.unary_unary(f"/{SERVICE.full_name}/{method}")

        @examples(40, **ONCE)
        @given(st.binary(max_size=40))
        def ask(message: bytes) -> None:
            try:
                call(message, timeout=60)
            except grpc.RpcError as error:
                assert error.code() not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED), error
                assert "unexpected" not in (error.details() or "")

        ask()
