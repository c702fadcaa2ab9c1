"""HTTP by the activator to a real server: queued, passed on, streamed, refused with words."""

import asyncio
import json
import socket
from typing import Any

import grpc
import httpx
import numpy as np
import pytest
from tests.agent.activator.standing import Standing, endpoint, standing
from tests.peers.server import Server
from tests.waiting import until
from tritonclient.http import InferInput
from tritonclient.http.aio import InferenceServerClient

from argosy_agent.activator.grpc.listener import GrpcListener
from argosy_agent.activator.http.listener import Listener, ListenError
from argosy_agent.contract.activation import Endpoint

NOWHERE = Endpoint("127.0.0.1", 1, 1)
BODY = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}]}


async def get(at: Standing, path: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(f"http://{at.http}{path}", timeout=60)


async def post(at: Standing, path: str, body: Any) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.post(f"http://{at.http}{path}", json=body, timeout=60)


async def test_requests_wait_until_a_server_has_the_model_and_are_answered_by_it(server: Server) -> None:
    async with standing() as at:
        at.says()
        requests = [asyncio.create_task(post(at, "/v2/models/identity/infer", BODY)) for _ in range(3)]
        await at.channel.until(**{"the-identity": 3})
        at.says(endpoint(server))
        answers = await asyncio.gather(*requests)
        await at.channel.until()
    for answer in answers:
        assert answer.status_code == 200
        assert answer.json()["outputs"][0]["data"] == [1.0, 2.0]
        assert answer.headers["connection"] == "close"


async def test_tritons_client_waits_with_a_large_tensor_over_several_requests(
    server: Server,
) -> None:
    data = np.arange(200_000, dtype=np.float32).reshape(1, -1)
    tensor = InferInput("INPUT0", list(data.shape), "FP32")
    tensor.set_data_from_numpy(data)
    async with standing() as at:
        at.says()
        client = InferenceServerClient(at.http)
        try:
            assert await client.is_server_live()
            assert await client.is_model_ready("identity")
            first = asyncio.create_task(client.infer("identity", [tensor]))
            await at.channel.until(**{"the-identity": 1})
            at.says(endpoint(server))
            assert np.array_equal((await first).as_numpy("OUTPUT0"), data)
            for _ in range(3):
                assert np.array_equal((await client.infer("identity", [tensor])).as_numpy("OUTPUT0"), data)
            assert (await client.get_model_metadata("identity"))["name"] == "identity"
        finally:
            await client.close()


async def test_events_come_as_the_server_sends_them() -> None:
    """The second is sent when the first has come to the client."""
    came = asyncio.Event()

    async def sends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"
        )
        await came.wait()
        writer.write(b"data: 2\n\n")
        writer.close()

    listening = await asyncio.start_server(sends, "127.0.0.1", 0)
    result: list[str] = []
    async with listening, standing() as at, httpx.AsyncClient(timeout=60) as client:
        at.says(Endpoint("127.0.0.1", listening.sockets[0].getsockname()[1], 1))
        async with client.stream("POST", f"http://{at.http}/v2/models/repeat/generate_stream", json={}) as response:
            async for line in response.aiter_lines():
                if line:
                    result.append(line)
                    came.set()
    assert result == ["data: 1", "data: 2"]


async def test_generated_events_come_to_their_end(server: Server) -> None:
    async with standing() as at:
        at.says(endpoint(server))
        answer = await post(at, "/v2/models/repeat/generate_stream", {"IN": [1, 2, 3]})
    assert [json.loads(line[5:])["OUT"] for line in answer.text.splitlines() if line] == [1, 2, 3]


async def test_who_leaves_waits_no_more() -> None:
    async with standing() as at:
        at.says()
        reader, writer = await asyncio.open_connection(*at.http.split(":"))
        writer.write(b"POST /v2/models/identity/infer HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")
        await at.channel.until(**{"the-identity": 1})
        writer.close()
        await at.channel.until()
        del reader
        async with httpx.AsyncClient() as client:
            text = (await client.get(f"http://{at.metrics}/metrics")).text
    assert 'argosy_activator_requests_total{model="the-identity",outcome="gone"} 1' in text
    assert 'argosy_activator_held_requests{model="the-identity"} 0' in text


async def test_hundreds_that_come_at_once_all_wait_and_are_all_answered(server: Server) -> None:
    count = 600
    limits = httpx.Limits(max_connections=count)
    async with standing() as at, httpx.AsyncClient(timeout=120, limits=limits) as client:
        at.says()
        url = f"http://{at.http}/v2/models/identity/infer"
        requests = [asyncio.create_task(client.post(url, json=BODY)) for _ in range(count)]
        await at.channel.until(**{"the-identity": count})
        at.says(endpoint(server))
        answers = await asyncio.gather(*requests)
    assert {answer.status_code for answer in answers} == {200}


async def test_a_server_that_does_not_listen_any_more_is_waited_for(server: Server) -> None:
    async with standing() as at:
        at.says(NOWHERE)
        request = asyncio.create_task(post(at, "/v2/models/identity/infer", BODY))
        await at.channel.until(**{"the-identity": 1})
        at.says(NOWHERE, endpoint(server))
        assert (await request).status_code == 200


async def test_what_is_answered_where_no_server_runs() -> None:
    async with standing("--max-held-requests=1") as at:
        assert (await get(at, "/v2/health/live")).status_code == 200
        assert (await get(at, "/v2/health/ready")).status_code == 503
        at.says(timeout_s=0.0, reason="its replicas wait for a free GPU")
        while (await get(at, "/v2/health/ready")).status_code != 200:
            pass
        assert (await get(at, "/v2/models/identity/ready")).status_code == 200
        assert (await get(at, "/v2")).json()["name"] == "argosy"
        refused = await post(at, "/v2/models/identity/infer", BODY)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["error"] == (
            "model 'identity' was not ready within 0 s: its replicas wait for a free GPU; ask again later"
        )
        unknown = await post(at, "/v2/models/nothing/infer", BODY)
        assert unknown.status_code == 404
        assert "no InferenceModel or Ensemble of this pool with minReplicas 0" in unknown.json()["error"]
        for path in ("/v2/models/identity/stats", "/v2/repository/index", "/v2/models/stats"):
            refused = await get(at, path)
            assert refused.status_code == 503
            assert "only a request for inference" in refused.json()["error"]
        at.says()
        first = asyncio.create_task(post(at, "/v2/models/identity/infer", BODY))
        await at.channel.until(**{"the-identity": 1})
        second = await post(at, "/v2/models/identity/infer", BODY)
        assert second.status_code == 503
        assert "1 requests wait already" in second.json()["error"]
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/9\r\n\r\n", b"400"),
        (b"GET /v2 HTTP/1.1\r\nno header\r\n\r\n", b"400"),
        (b"GET /v2 HTTP/1.1\r\nA: " + b"x" * 200_000 + b"\r\n\r\n", b"400"),
    ],
)
async def test_what_is_no_request_is_refused(data: bytes, status: bytes) -> None:
    async with standing() as at:
        reader, writer = await asyncio.open_connection(*at.http.split(":"))
        writer.write(data)
        assert (await reader.read()).split(b" ")[1] == status
        writer.close()


async def _ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def test_a_server_that_ends_halfway_is_reported_and_not_retried() -> None:
    came = asyncio.Event()

    async def breaks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert not came.is_set()
        came.set()
        await _ends(reader, writer)

    listening = await asyncio.start_server(breaks, "127.0.0.1", 0)
    async with listening, standing() as at:
        at.says(Endpoint("127.0.0.1", listening.sockets[0].getsockname()[1], 1))
        answer = await post(at, "/v2/models/identity/infer", BODY)
    assert answer.status_code == 502
    assert "whether the request was executed is not known" in answer.json()["error"]


async def test_ordered_to_end_it_goes_on_with_waiting_requests(server: Server) -> None:
    async with standing("--exit-timeout-secs=60") as at:
        at.says()
        request = asyncio.create_task(post(at, "/v2/models/identity/infer", BODY))
        await at.channel.until(**{"the-identity": 1})
        at.stop.set()
        at.says(endpoint(server))
        assert (await request).status_code == 200
        await at.running
        assert at.channel.left


async def test_what_cannot_be_read_changes_nothing(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async with standing() as at:
        at.says(endpoint(server))
        at.channel.part(0).put_nowait('{"members": [{}]}')
        await until(lambda: "timeoutSeconds is missing" in caplog.text)
        assert (await post(at, "/v2/models/identity/infer", BODY)).status_code == 200


async def test_a_port_that_is_taken_is_named() -> None:
    async with standing() as at:
        with pytest.raises(ListenError, match=f"port {at.activator.ports[0]} cannot be listened on: Address already"):
            await Listener(_ends).start("127.0.0.1", at.activator.ports[0])
        with pytest.raises(ListenError, match=f"port {at.activator.ports[0]} cannot be listened on"):
            await GrpcListener(grpc.GenericRpcHandler, 1).start("127.0.0.1", at.activator.ports[0])


@pytest.mark.parametrize("has_ipv6", [True, False])
async def test_without_a_host_every_address_is_listened_on(has_ipv6: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, bool]] = []
    real = socket.create_server

    def create_server(address: tuple[str, int], *, dualstack_ipv6: bool = False, **_: Any) -> socket.socket:
        requests.append((address[0], dualstack_ipv6))
        if dualstack_ipv6 and not has_ipv6:
            raise OSError("Cannot assign requested address")
        return real(("127.0.0.1", address[1]))  # what tests start is reached from this machine alone

    monkeypatch.setattr(socket, "create_server", create_server)
    listener = Listener(_ends)
    assert await listener.start("", 0)
    listener.close()
    assert requests == ([("", True)] if has_ipv6 else [("", True), ("", False)])
