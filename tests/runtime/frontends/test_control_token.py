"""A server with a control token: to control it takes the token, over HTTP and gRPC alike; all else stays open."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import httpx
import pytest
import tritonclient.grpc.aio as triton
from tests.runtime.frontends.conftest import FakePlane
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from argosy_runtime.frontends.grpc import listener as grpc_frontend
from argosy_runtime.frontends.http import app as http_frontend
from argosy_runtime.frontends.restrictions import control_restrictions

TOKEN = "0123456789abcdef"
HEADER = {"authorization": f"Bearer {TOKEN}"}
WRONG = [{}, {"authorization": ""}, {"authorization": TOKEN}, {"authorization": f"Bearer {TOKEN}0"}]
LOAD, UNLOAD = "/v2/repository/models/echo/load", "/v2/repository/models/echo/unload"
CONTROL = [
    ("POST", LOAD),
    ("POST", UNLOAD),
    ("POST", "/v2/repository/mine/models/echo/load"),
    ("GET", "/v2/logging"),
    ("POST", "/v2/logging"),
    ("POST", "/v2/trace/setting"),
    ("POST", "/v2/models/echo/trace/setting"),
    ("POST", "/v2/systemsharedmemory/region/r/register"),
    ("POST", "/v2/cudasharedmemory/region/r/register"),
    ("POST", "/v2/systemsharedmemory/unregister"),
]
CALLS = [
    ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name="echo")),
    ("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(model_name="echo")),
    ("LogSettings", pb.LogSettingsRequest()),
    ("TraceSetting", pb.TraceSettingRequest()),
    ("SystemSharedMemoryRegister", pb.SystemSharedMemoryRegisterRequest(name="r")),
    ("CudaSharedMemoryRegister", pb.CudaSharedMemoryRegisterRequest(name="r")),
    ("SystemSharedMemoryUnregister", pb.SystemSharedMemoryUnregisterRequest()),
]


@dataclass
class Guarded:
    """Clients of a server with a token, and what it serves."""

    plane: FakePlane
    http: httpx.AsyncClient
    stub: Any
    address: str

    @property
    def untouched(self) -> bool:
        """True if nothing was loaded or unloaded."""
        return not self.plane.loaded and not self.plane.unloaded


@pytest.fixture
async def guarded() -> AsyncIterator[Guarded]:
    """Yield a server with a token, on loopback."""
    plane, host, restricted = FakePlane(), "127.0.0.1", control_restrictions(TOKEN)
    http = await http_frontend.serve(plane, http_frontend.HttpOptions(host=host, port=0, restricted=restricted))
    rpc = await grpc_frontend.serve(plane, grpc_frontend.GrpcListenOptions(host=host, port=0, restricted=restricted))
    address = f"{host}:{rpc.port}"
    async with (
        httpx.AsyncClient(base_url=f"http://{host}:{http.port}", trust_env=False) as client,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield Guarded(plane, client, service_pb2_grpc.GRPCInferenceServiceStub(channel), address)
    await http.stop(1)
    await rpc.stop(1)


@pytest.mark.parametrize(("method", "path"), CONTROL)
async def test_control_over_http_is_refused_without_the_token_and_names_the_flag(
    guarded: Guarded, method: str, path: str
) -> None:
    for headers in WRONG:
        reply = await guarded.http.request(method, path, headers=headers)
        assert reply.status_code == 403
        assert "--control-token-file" in reply.json()["error"]
        assert TOKEN not in reply.text
    assert guarded.untouched
    assert (await guarded.http.request(method, path, headers=HEADER)).status_code != 403


@pytest.mark.parametrize(("method", "request_"), CALLS)
async def test_control_over_grpc_is_refused_without_the_token_and_names_the_flag(
    guarded: Guarded, method: str, request_: Any
) -> None:
    call = getattr(guarded.stub, method)
    for headers in WRONG:
        with pytest.raises(grpc.aio.AioRpcError, match="--control-token-file") as refused:
            await call(request_, metadata=tuple(headers.items()))
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert guarded.untouched
    allowed = call(request_, metadata=tuple(HEADER.items()))
    assert await allowed.code() is not grpc.StatusCode.PERMISSION_DENIED


async def test_the_token_opens_loads_to_the_clients_libraries(guarded: Guarded) -> None:
    await guarded.http.post(LOAD, headers=HEADER)
    async with triton.InferenceServerClient(guarded.address) as client:
        await client.load_model("echo", headers=HEADER)
        await client.unload_model("echo", headers=HEADER)
    assert [name for name, *_ in guarded.plane.loaded] == ["echo", "echo"]
    assert guarded.plane.unloaded == [("echo", False)]


async def test_a_page_of_another_site_controls_nothing(guarded: Guarded) -> None:
    page = {"origin": "http://evil.example", "host": "evil.example"}
    body = '{"parameters":{"config":"{}","file:1/model.py":"cHJpbnQoKQ=="}}'
    for path in (LOAD, UNLOAD, "/v2/logging"):
        simple = await guarded.http.post(path, content=body, headers={**page, "content-type": "text/plain"})
        assert simple.status_code == 403
        preflight_headers = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        preflight = await guarded.http.options(path, headers={**page, **preflight_headers})
        assert preflight.status_code >= 400
        for reply in (simple, preflight):
            assert not [name for name in reply.headers if name.startswith("access-control-")]
    assert guarded.untouched


async def test_inference_and_what_only_reads_stay_open(guarded: Guarded) -> None:
    tensor = {"name": "IN", "datatype": "FP32", "shape": [1, 1], "data": [1]}
    assert (await guarded.http.post("/v2/models/echo/infer", json={"inputs": [tensor]})).status_code == 200
    assert (await guarded.http.post("/v2/repository/index")).json()[0]["name"] == "echo"
    for path in ("/v2", "/v2/health/ready", "/v2/models/echo", "/v2/models/echo/config", "/v2/models/stats"):
        assert (await guarded.http.get(path)).status_code == 200
    assert (await guarded.stub.RepositoryIndex(pb.RepositoryIndexRequest())).models
    assert (await guarded.stub.ServerReady(pb.ServerReadyRequest())).ready
    assert (await guarded.stub.ModelStatistics(pb.ModelStatisticsRequest())).model_stats
