"""What gRPC asks of a server beyond answering: statuses, deadlines, compression, back-pressure, health, leaving."""

import asyncio
import gc
import gzip
import struct
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived
from tritonclient.grpc import model_config_pb2 as mc
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from argosy_runtime.errors import ServingError, internal, not_found
from argosy_runtime.frontends.grpc import listener as grpc_frontend
from argosy_runtime.frontends.grpc.tls import TlsFiles
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor

from .conftest import FakePlane

CODE = grpc.StatusCode
METHOD = "/inference.GRPCInferenceService/"
PATIENCE_S = 20


class Endless:
    """A request whose model answers until it is told to stop, as fast as it may."""

    def __init__(self, plane: "Plane", request: InferRequest, deliver: Deliver) -> None:
        self.plane, self.request, self._deliver = plane, request, deliver
        self._loop = asyncio.get_running_loop()
        self._paused = self._over = False
        self.pauses = self.sent = 0
        self._loop.call_soon(self._step)

    def _step(self) -> None:
        if self._paused or self._over:
            return
        self.sent += 1
        data = Tensor("OUT", "UINT8", np.zeros(10_000, np.uint8))
        self._deliver(InferResponse("endless", "1", self.request.id, [data], {}, None, False))
        self._loop.call_soon(self._step)

    def cancel(self) -> None:
        self._over = True
        self.plane.cancelled.set()

    def pause(self) -> None:
        self._paused = True
        self.pauses += 1
        self.plane.paused.set()

    def resume(self) -> None:
        self._paused = False
        self._loop.call_soon(self._step)


class Plane(FakePlane):
    """The fake, with a model that never ends, one that fails while it leaves, and one whose loading takes its time."""

    def reset(self) -> None:
        super().reset()
        self.paused = threading.Event()
        self.endless: list[Endless] = []
        self.may_load = asyncio.Event()
        self.loading = asyncio.Event()
        self.has_loaded = asyncio.Event()

    def model_config(self, name: str, version: str) -> mc.ModelConfig:
        if name == "leaving":
            raise not_found("Request for unknown model: 'leaving' is not found")
        if name == "endless":
            return mc.ModelConfig(model_transaction_policy=mc.ModelTransactionPolicy(decoupled=True))
        return super().model_config(name, version)

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        if request.model_name == "endless":
            self.endless.append(Endless(self, request, deliver))
            return self.endless[-1]
        if request.model_name == "leaving":
            self.requests.append(request)
            failure = InferResponse("leaving", "1", request.id, error=internal("the model's process died"))
            asyncio.get_running_loop().call_soon(deliver, failure)
            return Endless(self, request, lambda _: None)
        return super().submit(request, deliver, single)

    async def load(self, name: str, config: str | None, files: Mapping[str, bytes]) -> None:
        self.loading.set()
        await self.may_load.wait()
        await super().load(name, config, files)
        self.has_loaded.set()


@pytest.fixture
async def plane() -> Plane:
    return Plane()


@pytest.fixture
async def listener(plane: Plane) -> AsyncIterator[grpc_frontend.GrpcListener]:
    options = grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0)
    serving = await grpc_frontend.serve(plane, options)
    yield serving
    await serving.stop(0)


@pytest.fixture
async def channel(listener: grpc_frontend.GrpcListener) -> AsyncIterator[grpc.aio.Channel]:
    unlimited = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{listener.port}", options=unlimited) as opened:
        yield opened


@pytest.fixture
def stub(channel: grpc.aio.Channel) -> Any:
    return service_pb2_grpc.GRPCInferenceServiceStub(channel)


def ask(model: str, size: int = 4, request_id: str = "") -> pb.ModelInferRequest:
    request = pb.ModelInferRequest(model_name=model, id=request_id)
    request.inputs.add(name="IN", datatype="FP32", shape=[size // 4])
    request.raw_input_contents.append(bytes(range(256)) * (size // 256) + bytes(size % 256))
    return request


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110  (the fake tells nobody)
            await asyncio.sleep(0.001)


async def test_an_unknown_method(channel: grpc.aio.Channel) -> None:
    error = await refused(channel.unary_unary(METHOD + "Nope")(b"x"))
    assert (error.code(), error.details()) == (CODE.UNIMPLEMENTED, "Method not found!")


async def test_what_is_no_message(channel: grpc.aio.Channel) -> None:
    assert (await refused(channel.unary_unary(METHOD + "ModelReady")(b"\xff"))).code() is CODE.INTERNAL
    assert (await refused(channel.unary_unary(METHOD + "ModelInfer")(b"\xff"))).code() is CODE.INVALID_ARGUMENT


async def test_messages_in_any_language(stub: Any) -> None:
    error = await refused(stub.ModelInfer(ask("modèle 100%\n模型")))
    assert error.details() == "Request for unknown model: 'modèle 100%\n模型' is not found"


async def test_a_message_too_long_for_clients_is_cut_off(stub: Any) -> None:
    error = await refused(stub.ModelInfer(ask("x" * 100_000)))
    assert error.code() is CODE.NOT_FOUND
    assert error.details().startswith("Request for unknown model: 'xxx")
    assert error.details().endswith("x...")


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_compressed_requests(stub: Any, compression: grpc.Compression) -> None:
    request = ask("echo", 40_000)
    answer = await stub.ModelInfer(request, compression=compression)
    assert answer.raw_output_contents == request.raw_input_contents
    stream = stub.ModelStreamInfer(iter([request, request]), compression=compression)
    answers = [response.infer_response.raw_output_contents async for response in stream]
    assert answers == [request.raw_input_contents] * 2


async def test_compressed_responses(plane: Plane) -> None:
    options = grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0, compression=6)
    serving = await grpc_frontend.serve(plane, options)
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
    body = framed(ask("echo", 4).SerializeToString())
    wanted = {"path": METHOD + "ModelInfer", "grpc_accept_encoding": "identity, gzip"}
    raw = Raw(reader, writer)
    assert (await raw.ask(body, **wanted))["grpc-encoding"] == "gzip"
    assert "grpc-encoding" not in await raw.ask(body, path=wanted["path"])
    writer.close()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{serving.port}") as opened:
        stub, request = service_pb2_grpc.GRPCInferenceServiceStub(opened), ask("echo", 40_000)
        assert (await stub.ModelInfer(request)).raw_output_contents == request.raw_input_contents
        async for response in stub.ModelStreamInfer(iter([request])):
            assert response.infer_response.raw_output_contents == request.raw_input_contents
    await serving.stop(0)


@pytest.mark.parametrize("size", [0, 4, 20_000, 5_000_000])
async def test_messages_of_any_size(stub: Any, size: int) -> None:
    request = ask("echo", size)
    answers = await asyncio.gather(*(stub.ModelInfer(request) for _ in range(4)))
    assert all(answer.raw_output_contents == request.raw_input_contents for answer in answers)


async def test_requests_like_others_are_made_of_a_plan(stub: Any, plane: Plane) -> None:
    for number in range(4):
        request = ask("echo", 64, str(number))
        request.raw_input_contents[0] = struct.pack("16f", *range(number, number + 16))
        answer = await stub.ModelInfer(request)
        assert (answer.id, answer.raw_output_contents) == (str(number), request.raw_input_contents)
    plans = [request.plan for request in plane.requests]
    assert plans[:2] == [None, None]
    assert plans[2] is plans[3] is not None
    wrong = ask("echo", 64)
    wrong.raw_input_contents[0] = b"short"
    assert "input byte size mismatch for input 'IN'" in (await refused(stub.ModelInfer(wrong))).details()
    async for response in stub.ModelStreamInfer(iter([ask("echo", 64, "s")])):
        assert response.infer_response.id == "s"
    assert plane.requests[-1].plan is plans[2]


async def test_a_deadline_ends_the_call_and_its_request(stub: Any, plane: Plane) -> None:
    error = await refused(stub.ModelInfer(ask("slow"), timeout=0.05))
    assert error.code() is CODE.DEADLINE_EXCEEDED
    await until(plane.cancelled.is_set)


async def test_a_failure_while_a_model_leaves_keeps_its_status(stub: Any) -> None:
    error = await refused(stub.ModelInfer(ask("leaving")))
    assert (error.code(), error.details()) == (CODE.INTERNAL, "the model's process died")


async def test_a_load_goes_on_when_its_client_hangs_up(stub: Any, plane: Plane) -> None:
    call = stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="m"))
    asked = asyncio.ensure_future(call)
    await asyncio.wait_for(plane.loading.wait(), PATIENCE_S)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    plane.may_load.set()
    await asyncio.wait_for(plane.has_loaded.wait(), PATIENCE_S)


async def test_who_does_not_read_his_stream_makes_its_model_wait(stub: Any, plane: Plane) -> None:
    stream = stub.ModelStreamInfer(iter([ask("endless")]))
    await stream.read()
    await until(plane.paused.is_set)
    (endless,) = plane.endless
    sent = endless.sent
    for _ in range(sent + 100):
        await stream.read()
    assert endless.sent > sent
    stream.cancel()
    await until(plane.cancelled.is_set)


async def test_who_asks_more_than_is_answered_waits(stub: Any, plane: Plane) -> None:
    stream = stub.ModelStreamInfer(ask("slow", request_id=str(number)) for number in range(1100))
    reading = asyncio.ensure_future(_ids(stream))
    await until(lambda: len(plane.requests) == 1024)
    plane.released.set()
    assert await reading == [str(number) for number in range(1100)]


async def _ids(stream: Any) -> list[str]:
    return [response.infer_response.id async for response in stream]


async def test_health(channel: grpc.aio.Channel, plane: Plane) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    serving, not_serving = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
    assert (await health.Check(health_pb2.HealthCheckRequest(service="any"))).status == serving
    # A HealthListResponse: a map with one entry, whose key is empty and whose value says SERVING.
    assert await channel.unary_unary("/grpc.health.v1.Health/List")(b"") == b"\x0a\x06\x0a\x00\x12\x02\x08\x01"
    watch = health.Watch(health_pb2.HealthCheckRequest())
    assert (await watch.read()).status == serving
    plane.is_ready = False
    assert (await watch.read()).status == not_serving
    watch.cancel()


async def test_a_leaving_server_sends_its_clients_away_and_answers_them(
    listener: grpc_frontend.GrpcListener, stub: Any, plane: Plane
) -> None:
    late = asyncio.ensure_future(stub.ModelInfer(ask("slow", request_id="late")))
    await until(plane.started.is_set)
    first = set(listener._protocols)
    listener.drain()
    assert (await stub.ModelInfer(ask("echo", request_id="other"))).id == "other"
    plane.released.set()
    assert (await late).id == "late"
    await until(lambda: not first & listener._protocols)
    assert (await stub.ModelInfer(ask("echo", request_id="again"))).id == "again"


class Raw:
    """A client that says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="latin-1"))
        self._h2.initiate_connection()

    async def ask(self, body: bytes, **changes: str) -> dict[str, str]:
        """The head of a response."""
        fields = {":method": "POST", ":scheme": "http", ":path": METHOD + "ServerLive", ":authority": "x"}
        fields |= {"te": "trailers", "content-type": "application/grpc"}
        fields |= {
            {"method": ":method", "path": ":path"}.get(name, name.replace("_", "-")): value
            for name, value in changes.items()
        }
        stream_id = self._h2.get_next_available_stream_id()
        self._h2.send_headers(stream_id, list(fields.items()))
        self._h2.send_data(stream_id, body, end_stream=True)
        self._writer.write(self._h2.data_to_send())
        while True:
            data = await asyncio.wait_for(self._reader.read(65536), PATIENCE_S)
            for event in self._h2.receive_data(data):
                if isinstance(event, ResponseReceived) and event.stream_id == stream_id:
                    return dict(event.headers)


@pytest.fixture
async def raw(listener: grpc_frontend.GrpcListener) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    yield Raw(reader, writer)
    writer.close()


def framed(message: bytes, compressed: int = 0) -> bytes:
    return struct.pack(">BI", compressed, len(message)) + message


async def test_what_is_no_call(raw: Raw) -> None:
    assert (await raw.ask(b"", method="GET"))[":status"] == "405"
    assert (await raw.ask(b"", content_type="text/plain"))[":status"] == "415"


@pytest.mark.parametrize(
    ("body", "changes", "status"),
    [
        (b"", {}, CODE.UNIMPLEMENTED),
        (framed(b"") * 2, {}, CODE.UNIMPLEMENTED),
        (b"\0\0\0", {}, CODE.INTERNAL),
        (framed(b"xx")[:-1], {}, CODE.INTERNAL),
        (framed(gzip.compress(b"", mtime=0), 1), {}, CODE.INTERNAL),
        (framed(b"no gzip", 1), {"grpc_encoding": "gzip"}, CODE.INTERNAL),
        (framed(b""), {"grpc_encoding": "snappy"}, CODE.UNIMPLEMENTED),
        (framed(b""), {"grpc_timeout": "soon"}, CODE.INTERNAL),
    ],
)
async def test_bad_calls_end_with_a_status(raw: Raw, body: bytes, changes: dict[str, str], status: Any) -> None:
    assert (await raw.ask(body, **changes))["grpc-status"] == str(status.value[0])


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        (framed(b""), {"grpc_timeout": "99999999H"}),
        (framed(gzip.compress(b"", mtime=0), 1), {"grpc_encoding": "gzip"}),
        (framed(zlib.compress(b""), 1), {"grpc_encoding": "deflate"}),
        (framed(b""), {"content_type": "application/grpc+proto"}),
    ],
)
async def test_good_calls(raw: Raw, body: bytes, changes: dict[str, str]) -> None:
    assert "grpc-status" not in await raw.ask(body, **changes)


@pytest.mark.parametrize("mutual", [False, True])
async def test_tls(plane: Plane, certificate: tuple[Path, Path], mutual: bool) -> None:
    paths = [str(path) for path in certificate]
    files = TlsFiles(certificate=paths[0], key=paths[1], clients_root=paths[0] if mutual else "")
    serving = await grpc_frontend.serve(plane, grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0, tls=files))
    ours, key = [path.read_bytes() for path in certificate]
    known = grpc.ssl_channel_credentials(ours, key, ours)
    async with grpc.aio.secure_channel(f"localhost:{serving.port}", known) as opened:
        request = ask("echo", 100_000)
        answer = await service_pb2_grpc.GRPCInferenceServiceStub(opened).ModelInfer(request)
        assert answer.raw_output_contents == request.raw_input_contents
    unknown = grpc.ssl_channel_credentials(ours)
    async with grpc.aio.secure_channel(f"localhost:{serving.port}", unknown) as opened:
        call = service_pb2_grpc.GRPCInferenceServiceStub(opened).ServerLive(pb.ServerLiveRequest())
        assert (await refused(call)).code() is CODE.UNAVAILABLE if mutual else (await call).live
    await serving.stop(0)


async def test_tls_files_that_do_not_do_are_named_by_their_flag(plane: Plane, certificate: tuple[Path, Path]) -> None:
    cert, key = (str(path) for path in certificate)
    for files, flag in (
        (TlsFiles(certificate="nowhere", key=key), "--grpc-server-cert"),
        (TlsFiles(certificate=cert, key=key, clients_root="nowhere"), "--grpc-root-cert"),
    ):
        with pytest.raises(ServingError, match=flag):
            await grpc_frontend.serve(plane, grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0, tls=files))


async def test_the_end_cancels_what_does_not_finish(
    listener: grpc_frontend.GrpcListener, stub: Any, plane: Plane
) -> None:
    call = asyncio.ensure_future(stub.ModelInfer(ask("slow")))
    await until(plane.started.is_set)
    await listener.stop(0.01)
    assert (await refused(call)).code() is CODE.UNAVAILABLE
    await until(plane.cancelled.is_set)


async def test_a_call_that_is_over_keeps_no_request_for_the_collector(stub: Any, plane: Plane) -> None:
    asked = pb.ModelInferRequest(model_name="echo")
    asked.inputs.add(name="IN", datatype="UINT8", shape=[100_000])
    asked.raw_input_contents.append(b"x" * 100_000)
    gc.collect()
    gc.disable()
    try:
        before = sum(type(one) is InferRequest for one in gc.get_objects())
        for _ in range(20):
            await stub.ModelInfer(asked)
        assert len(plane.requests) == 20
        plane.requests.clear()
        # The last one may still be on the stack.
        assert sum(type(one) is InferRequest for one in gc.get_objects()) <= before + 2
    finally:
        gc.enable()
