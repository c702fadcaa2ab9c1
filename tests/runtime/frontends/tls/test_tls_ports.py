"""HTTP and metrics over TLS, with and without certificates of clients."""

import asyncio
import ssl
import time
from dataclasses import replace
from pathlib import Path

import grpc
import httpx
import pytest
from tests.runtime.authority import Authority
from tests.runtime.frontends.conftest import FakePlane
from tests.runtime.frontends.tls.conftest import replace_files
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from argosy_runtime.frontends import metrics
from argosy_runtime.frontends.grpc import listener as grpc_frontend
from argosy_runtime.frontends.http import app as http_frontend
from argosy_runtime.frontends.http.wire.timeouts import Timeouts
from argosy_runtime.frontends.tls.files import TlsFiles
from argosy_runtime.frontends.tls.served import ServedCertificate

HOST = "127.0.0.1"


def client(authority: Authority, shown: tuple[Path, Path] | None = None) -> httpx.AsyncClient:
    """Return a client that trusts the authority, and shows a certificate if it has one."""
    context = ssl.create_default_context(cafile=str(authority.root))
    context.set_alpn_protocols(["h2", "http/1.1"])
    if shown is not None:
        context.load_cert_chain(*shown)
    return httpx.AsyncClient(verify=context)


async def test_http_and_metrics_over_tls(files: TlsFiles, authority: Authority) -> None:
    served = ServedCertificate("http", files)
    listening = await http_frontend.serve(FakePlane(), http_frontend.HttpOptions(host=HOST, port=0, tls=served.context))
    scraped = await metrics.serve(FakePlane(), metrics.MetricsOptions(host=HOST, port=0, tls=served.context))
    large = {"name": "IN", "datatype": "FP32", "shape": [1, 50_000], "data": [1.5] * 50_000}
    async with client(authority) as asking:
        base = f"https://localhost:{listening.port}"
        assert (await asking.get(f"{base}/v2/health/ready")).status_code == 200
        answer = await asking.post(f"{base}/v2/models/echo/infer", json={"inputs": [large]})
        assert answer.json()["outputs"][0]["data"] == large["data"]
        events = await asking.post(f"{base}/v2/models/repeat/generate_stream", json={"IN": 3})
        assert events.text.count("data: ") == 3
        assert (await asking.get(f"https://localhost:{scraped.port}/metrics")).status_code == 200
    with pytest.raises(httpx.HTTPError):
        await httpx.AsyncClient().get(f"http://localhost:{listening.port}/v2/health/ready")
    for one in (listening, scraped):
        await one.stop(0)


async def test_clients_without_a_certificate_are_refused_where_it_is_required(
    files: TlsFiles, authority: Authority, tmp_path: Path
) -> None:
    served = ServedCertificate("http", replace(files, clients_root=str(authority.root)))
    listening = await http_frontend.serve(FakePlane(), http_frontend.HttpOptions(host=HOST, port=0, tls=served.context))
    url = f"https://localhost:{listening.port}/v2/health/live"
    stranger = Authority(tmp_path, "stranger")
    async with client(authority, authority.issue("member")) as asking:
        assert (await asking.get(url)).status_code == 200
    for shown in (None, stranger.issue("visitor")):
        async with client(authority, shown) as asking:
            with pytest.raises(httpx.HTTPError):
                await asking.get(url)
    await listening.stop(0)


async def test_authorities_of_clients_are_replaced_too(files: TlsFiles, authority: Authority, tmp_path: Path) -> None:
    roots = tmp_path / "roots.pem"
    roots.write_bytes(authority.root.read_bytes())
    served = ServedCertificate("http", replace(files, clients_root=str(roots)))
    listening = await http_frontend.serve(FakePlane(), http_frontend.HttpOptions(host=HOST, port=0, tls=served.context))
    url = f"https://localhost:{listening.port}/v2/health/live"
    newer = Authority(tmp_path, "newer")
    former, member = authority.issue("former"), newer.issue("member")
    roots.write_bytes(newer.root.read_bytes())
    served.refresh(time.time())
    async with client(authority, member) as asking:
        assert (await asking.get(url)).status_code == 200
    async with client(authority, former) as asking:
        with pytest.raises(httpx.HTTPError):
            await asking.get(url)
    await listening.stop(0)


async def test_open_connections_stay_while_new_ones_get_the_new_certificate(
    files: TlsFiles, authority: Authority
) -> None:
    served = ServedCertificate("grpc", files)
    listening = await grpc_frontend.serve(
        FakePlane(), grpc_frontend.GrpcListenOptions(host=HOST, port=0, tls=served.context)
    )
    credentials = grpc.ssl_channel_credentials(authority.root.read_bytes())
    async with grpc.aio.secure_channel(f"localhost:{listening.port}", credentials) as opened:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(opened)
        assert (await stub.ServerLive(pb.ServerLiveRequest())).live
        other = Authority(Path(files.key).parent, "other")
        replace_files(files, other.issue("moved"))
        served.refresh(time.time())
        assert (await stub.ServerLive(pb.ServerLiveRequest())).live
    trusting = grpc.ssl_channel_credentials(other.root.read_bytes())
    async with grpc.aio.secure_channel(f"localhost:{listening.port}", trusting) as opened:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(opened)
        assert (await stub.ServerLive(pb.ServerLiveRequest())).live
    await listening.stop(0)


async def test_a_client_that_only_ends_its_side_of_tls_costs_nothing(files: TlsFiles) -> None:
    served = ServedCertificate("http", files)
    times = Timeouts(head=0.2, body=0.2, idle=0.2)
    listening = await http_frontend.serve(
        FakePlane(), http_frontend.HttpOptions(host=HOST, port=0, tls=served.context, timeouts=times)
    )
    blind = ssl.create_default_context()
    blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(HOST, listening.port, ssl=blind)
    writer.write(b"POST /v2/models/slow/infer HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
    assert b"408" in await reader.read()
    writer.close()
    await listening.stop(0)
