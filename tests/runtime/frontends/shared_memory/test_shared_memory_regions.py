"""Registering over both protocols: status, what is refused, and CUDA's handles."""

# Messages stand whole on their line, so that they can be searched for.
# ruff: noqa: E501

import base64
from typing import Any

import grpc
import httpx
import pytest
from tests.memory_objects import PAGE, MemoryObject
from tests.runtime.frontends.conftest import Running, client_regions
from tests.runtime.frontends.shared_memory.conftest import SIZE, Client
from tritonclient.grpc import service_pb2 as pb
from tritonclient.utils import InferenceServerException

from argosy_runtime.frontends.http import management

HANDLE = bytes(range(64))


def test_a_registered_region_is_reported_until_it_is_unregistered(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("b", made.key, PAGE, offset=PAGE)
    client.inner.register_system_shared_memory("a", made.name, SIZE)
    first = {"name": "a", "key": made.name, "offset": 0, "byte_size": SIZE}
    second = {"name": "b", "key": made.key, "offset": PAGE, "byte_size": PAGE}
    assert client.regions() == {"a": first, "b": second}
    client.inner.unregister_system_shared_memory("b")
    assert client.regions() == {"a": first}
    client.inner.register_system_shared_memory("c", made.key, SIZE)
    client.inner.unregister_system_shared_memory()
    assert client.regions() == {}


def test_memory_of_a_gpu(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    client.inner.register_cuda_shared_memory("g", base64.b64encode(HANDLE), 0, 32)
    assert client.regions("cuda") == {"g": {"name": "g", "device_id": 0, "byte_size": 32}}
    client.inner.infer(
        "echo", [client.input("IN", "FP32", [1, 2], 8, region="g")], outputs=[client.output("OUT", 8, region="g")]
    )
    client.inner.unregister_cuda_shared_memory()
    assert client.regions("cuda") == {}
    assert set(client.regions()) == {"r"}
    with pytest.raises(InferenceServerException, match="failed to register shared memory region: invalid args"):
        client.inner.register_cuda_shared_memory("g", base64.b64encode(HANDLE), 1, 32)


def test_refusals_of_both_protocols(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    for (name, key, size, offset), reported in (
        (("r", made.key, 8, 0), "shared memory region 'r' already in manager"),
        (("s", "/none", 8, 0), "Unable to open shared memory region: '/none'"),
        (("s", made.key, SIZE, PAGE), "failed to register shared memory region 's': invalid args"),
        (("s", made.key, 2**64 - 1, 0), "failed to register shared memory region 's': invalid args"),
        (("s", "///", 8, 0), "cannot register shared memory region 's' - invalid shm key '///'"),
        (
            ("s", "triton_python_backend_shm_region_x", 8, 0),
            "cannot register shared memory region 's' with key 'triton_python_backend_shm_region_x' as the key contains the reserved prefix 'triton_python_backend_shm_region_'",
        ),
    ):
        with pytest.raises(InferenceServerException) as raised:
            client.inner.register_system_shared_memory(name, key, size, offset=offset)
        assert raised.value.message() == reported
    assert set(client.regions()) == {"r"}
    with pytest.raises(InferenceServerException, match="'r' is registered as system shared memory, not CUDA shared"):
        client.inner.get_cuda_shared_memory_status("r")


@pytest.mark.parametrize(
    ("path", "body", "status", "reported"),
    [
        ("system", b"", 400, "Shared memory register request has no 'key' field"),
        ("system", b"[]", 400, "Shared memory register request has no 'key' field"),
        ("system", b"{", 500, "failed to parse the request JSON buffer: "),
        ("system", b'{"key":1}', 500, "attempt to access JSON non-string as string"),
        ("system", b'{"key":"/k"}', 400, "Shared memory register request has no 'byte_size' field"),
        ("system", b'{"key":"/k","byte_size":-1}', 500, "attempt to access JSON non-unsigned-integer as unsigned-integer"),
        ("system", b'{"key":"/k","byte_size":18446744073709551616}', 500, "attempt to access JSON non-unsigned-integer as unsigned-integer"),
        ("system", b'{"key":"/k","byte_size":1,"offset":"x"}', 500, "attempt to access JSON non-unsigned-integer as unsigned-integer"),
        ("cuda", b"{}", 400, "Shared memory register request has no 'raw_handle' field"),
        ("cuda", b'{"raw_handle":1}', 500, "attempt to access non-existing object member 'b64'"),
        ("cuda", b'{"raw_handle":{"b64":"x"}}', 500, "attempt to access non-existing object member 'byte_size'"),
        ("cuda", b'{"raw_handle":{"b64":"x"},"byte_size":1}', 500, "attempt to access non-existing object member 'device_id'"),
        ("cuda", b'{"raw_handle":{"b64":"!"},"byte_size":1,"device_id":0}', 400, "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t"),
    ],
)  # fmt: skip
def test_refusals_over_http(running: Running, path: str, body: bytes, status: int, reported: str) -> None:
    running.plane.regions = client_regions(allowed=True)
    reply = httpx.post(f"http://127.0.0.1:{running.http}/v2/{path}sharedmemory/region/r/register", content=body)
    assert reply.status_code == status
    assert reply.json()["error"].startswith(reported)


def test_a_handle_longer_than_triton_decodes_is_refused(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(management, "MOST_LENGTH", 7)
    body = b'{"raw_handle":{"b64":"AAAAAAAA"},"byte_size":1,"device_id":0}'
    running.plane.regions = client_regions(allowed=True)
    reply = httpx.post(f"http://127.0.0.1:{running.http}/v2/cudasharedmemory/region/r/register", content=body)
    assert reply.json() == {"error": "'raw_handle' exceeds the maximum allowed data size limit INT_MAX"}


@pytest.mark.parametrize("kind", ["system", "cuda"])
def test_a_region_without_a_name_is_refused_over_http(running: Running, kind: str) -> None:
    running.plane.regions = client_regions(allowed=True)
    reply = httpx.post(f"http://127.0.0.1:{running.http}/v2/{kind}sharedmemory/register", content=b"{}")
    assert reply.status_code == 400
    assert reply.json() == {"error": f"'region name' is necessary to register {kind} shared memory region"}


def test_a_handle_of_another_size_is_refused_over_grpc(stub: Any) -> None:
    for size in (0, 63, 65):
        with pytest.raises(grpc.RpcError, match="'raw_handle' must be a cudaIpcMemHandle_t of 64 bytes"):
            stub.CudaSharedMemoryRegister(pb.CudaSharedMemoryRegisterRequest(name="g", raw_handle=bytes(size)))


def test_a_request_may_name_a_region_where_none_can_be_registered(running: Running) -> None:
    location = {"name": "IN", "datatype": "FP32", "shape": [1, 2], "parameters": {"shared_memory_region": "r"}}
    reply = httpx.post(f"http://127.0.0.1:{running.http}/v2/models/echo/infer", json={"inputs": [location]})
    assert (reply.status_code, reply.json()) == (404, {"error": "Unable to find shared memory region: 'r'"})
