"""gRPC over TLS, with and without certificates of clients."""

from pathlib import Path

import grpc
import pytest
from tests.runtime.frontends.grpc.calling import CODE, Plane, ask, refused
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from argosy_runtime.frontends.grpc import listener as grpc_frontend
from argosy_runtime.frontends.tls.files import TlsFiles
from argosy_runtime.frontends.tls.served import ServedCertificate


@pytest.mark.parametrize("mutual", [False, True])
async def test_tls(plane: Plane, certificate: tuple[Path, Path], mutual: bool) -> None:
    paths = [str(path) for path in certificate]
    files = TlsFiles(certificate=paths[0], key=paths[1], clients_root=paths[0] if mutual else "")
    tls = ServedCertificate("grpc", files).context
    serving = await grpc_frontend.serve(plane, grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0, tls=tls))
    ours, key = [path.read_bytes() for path in certificate]
    registered = grpc.ssl_channel_credentials(ours, key, ours)
    async with grpc.aio.secure_channel(f"localhost:{serving.port}", registered) as opened:
        request = ask("echo", 100_000)
        answer = await service_pb2_grpc.GRPCInferenceServiceStub(opened).ModelInfer(request)
        assert answer.raw_output_contents == request.raw_input_contents
    unknown = grpc.ssl_channel_credentials(ours)
    async with grpc.aio.secure_channel(f"localhost:{serving.port}", unknown) as opened:
        call = service_pb2_grpc.GRPCInferenceServiceStub(opened).ServerLive(pb.ServerLiveRequest())
        assert (await refused(call)).code() is CODE.UNAVAILABLE if mutual else (await call).live
    await serving.stop(0)
