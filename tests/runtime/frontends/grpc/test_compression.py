"""Compressed messages: large ones are (de)compressed in threads, in their order, and only for calls that go on."""

import asyncio
import gzip
import random
import threading
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import examples
from tests.runtime.frontends.grpc.calling import CODE, METHOD, PATIENCE_S, Plane, Raw, ask, framed, refused
from tests.runtime.frontends.noted_zlib import Zlib
from tests.waiting import until
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from argosy_runtime.frontends.grpc import listener as grpc_frontend
from argosy_runtime.frontends.inflating import OFFLOAD_BYTES
from argosy_runtime.http2 import Limits

LARGE = 4 * OFFLOAD_BYTES


@pytest.fixture
async def noted(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Zlib]:
    zlib_ = Zlib(monkeypatch, threading.get_ident())
    yield zlib_
    zlib_.may_go_on.set()


@asynccontextmanager
async def compressing(plane: Plane, **limits: int) -> AsyncIterator[grpc.aio.Channel]:
    """Yield a channel to a listener that compresses its answers."""
    options = grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0, compression=1, limits=Limits(**limits))
    serving = await grpc_frontend.serve(plane, options)
    unlimited = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{serving.port}", options=unlimited) as opened:
        yield opened
    await serving.stop(0)


def noise(size: int, request_id: str = "") -> pb.ModelInferRequest:
    """Return a request of which half can be compressed."""
    request = ask("echo", size, request_id)
    request.raw_input_contents[0] = random.Random(size).randbytes(size // 2) + bytes(size - size // 2)
    return request


def packed(request: pb.ModelInferRequest) -> bytes:
    return framed(gzip.compress(request.SerializeToString(), mtime=0), 1)


@pytest.mark.parametrize("request_", [ask("echo", LARGE), noise(LARGE)], ids=["becomes large", "is large"])
async def test_large_messages_are_decompressed_in_threads(
    stub: Any, noted: Zlib, request_: pb.ModelInferRequest
) -> None:
    answer = await stub.ModelInfer(request_, compression=grpc.Compression.Gzip)
    assert answer.raw_output_contents == request_.raw_input_contents
    stream = stub.ModelStreamInfer(iter([request_]), compression=grpc.Compression.Gzip)
    assert [one.infer_response.raw_output_contents async for one in stream] == [request_.raw_input_contents]
    assert noted.on_the_loop <= OFFLOAD_BYTES + 1
    assert noted.in_threads >= LARGE


async def test_disks_that_hang_hold_up_no_large_message(stub: Any) -> None:
    may_end, loop = threading.Event(), asyncio.get_running_loop()
    hung = [loop.run_in_executor(None, may_end.wait) for _ in range(40)]  # more than the default executor has threads
    try:
        answer = await stub.ModelInfer(noise(LARGE), compression=grpc.Compression.Gzip, timeout=PATIENCE_S)
        assert answer.raw_output_contents == noise(LARGE).raw_input_contents
    finally:
        may_end.set()
        await asyncio.gather(*hung)


async def test_small_messages_need_no_thread(stub: Any, noted: Zlib) -> None:
    await stub.ModelInfer(ask("echo", OFFLOAD_BYTES // 2), compression=grpc.Compression.Gzip)
    assert noted.on_the_loop >= OFFLOAD_BYTES // 2
    assert not noted.in_threads


@given(st.lists(st.sampled_from(["plain", "small", "large"]), min_size=1, max_size=10))
@examples(25)
def test_requests_of_a_stream_keep_their_order(kinds: list[str]) -> None:
    asyncio.run(_check_order(kinds))


async def _check_order(kinds: list[str]) -> None:
    plane = Plane()
    serving = await grpc_frontend.serve(plane, grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0))
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
    body = b""
    for number, kind in enumerate(kinds):
        request = ask("echo", LARGE if kind == "large" else 4, str(number))
        if kind == "large":
            request.raw_input_contents[0] = bytes(LARGE)
        body += framed(request.SerializeToString()) if kind == "plain" else packed(request)
    answers = await Raw(reader, writer).messages(body, path=METHOD + "ModelStreamInfer", grpc_encoding="gzip")
    ids = [pb.ModelStreamInferResponse.FromString(answer).infer_response.id for answer in answers]
    assert ids == [request.id for request in plane.requests] == [str(number) for number in range(len(kinds))]
    writer.close()
    await writer.wait_closed()
    await serving.stop(0)


@pytest.mark.parametrize(("method", "messages"), [("ModelInfer", 1), ("ModelStreamInfer", 2)])
async def test_what_is_abandoned_while_it_is_decompressed_is_not_run(
    raw: Raw, stub: Any, plane: Plane, noted: Zlib, method: str, messages: int
) -> None:
    noted.may_go_on.clear()
    large = ask("echo", LARGE, "large")
    large.raw_input_contents[0] = bytes(LARGE)
    abandoned = raw.begin(packed(large) * messages, path=METHOD + method, grpc_encoding="gzip")
    await until(noted.waiting.is_set)
    # Others are answered meanwhile.
    assert (await stub.ModelInfer(ask("echo", request_id="other"))).id == "other"
    raw.reset(abandoned)
    await raw.ask(framed(b""))
    noted.may_go_on.set()
    assert (await stub.ModelInfer(large, compression=grpc.Compression.Gzip)).id == "large"
    assert [request.id for request in plane.requests] == ["other", "large"]


async def test_a_deadline_holds_while_a_message_is_decompressed(stub: Any, plane: Plane, noted: Zlib) -> None:
    noted.may_go_on.clear()
    call = stub.ModelInfer(ask("echo", LARGE), timeout=0.2, compression=grpc.Compression.Gzip)
    assert (await refused(call)).code() is CODE.DEADLINE_EXCEEDED
    noted.may_go_on.set()
    await stub.ModelInfer(ask("echo", request_id="next"))
    assert [request.id for request in plane.requests] == ["next"]


async def test_a_broken_large_message_is_refused(raw: Raw) -> None:
    broken = gzip.compress(bytes(LARGE), mtime=0)[:-4]
    for method in ("ModelInfer", "ModelStreamInfer"):
        answer = await raw.ask(framed(broken, 1), path=METHOD + method, grpc_encoding="gzip")
        assert answer["grpc-status"] == str(CODE.INTERNAL.value[0])


async def test_answers_are_compressed_in_threads_and_keep_their_order(plane: Plane, noted: Zlib) -> None:
    async with compressing(plane) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert (await stub.ModelInfer(noise(LARGE))).raw_output_contents[0] == noise(LARGE).raw_input_contents[0]
        requests = [noise(size, str(number)) for number, size in enumerate((LARGE, 4, 4, LARGE, 4))]
        requests.append(ask("nope", 4, "5"))
        answers = [answer.infer_response async for answer in stub.ModelStreamInfer(iter(requests))]
        assert [answer.id for answer in answers] == ["0", "1", "2", "3", "4", "5"]
        for request, answer in zip(requests[:5], answers, strict=False):
            assert answer.raw_output_contents == request.raw_input_contents
        assert noted.on_the_loop <= OFFLOAD_BYTES
        assert noted.in_threads >= LARGE


async def test_an_error_that_ends_a_stream_comes_behind_the_answers_before_it(plane: Plane) -> None:
    async with compressing(plane) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        metadata = (("triton_grpc_error", "true"),)
        stream = stub.ModelStreamInfer(iter([noise(LARGE, "first"), ask("fails", 4)]), metadata=metadata)
        assert (await stream.read()).infer_response.id == "first"
        assert (await refused(stream.read())).code() is CODE.INTERNAL


async def test_a_model_waits_while_its_answers_are_compressed(plane: Plane) -> None:
    plane.endless_size = LARGE
    async with compressing(plane) as channel:
        stream = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(iter([ask("endless")]))
        for number in range(1, 40):
            assert (await stream.read()).infer_response.raw_output_contents[0] == bytes([number]) * LARGE
        (endless,) = plane.endless
        assert endless.pauses >= 39
        stream.cancel()
        await until(plane.cancelled.is_set)


async def test_answers_that_wait_to_be_compressed_count_as_unsent(plane: Plane, noted: Zlib) -> None:
    async with compressing(plane, unsent_limit=7 * LARGE // 2) as channel:
        noted.may_go_on.clear()
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        calls = [asyncio.ensure_future(stub.ModelInfer(noise(LARGE), timeout=PATIENCE_S)) for _ in range(8)]
        await until(lambda: sum(call.done() for call in calls) == 4)
        noted.may_go_on.set()
        await asyncio.wait(calls)
        codes = [error.code() for call in calls if isinstance(error := call.exception(), grpc.aio.AioRpcError)]
        assert codes == [CODE.RESOURCE_EXHAUSTED] * 4
        await stub.ModelInfer(noise(LARGE))


async def test_an_answer_that_cannot_be_compressed_is_an_error(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise MemoryError("no memory")

    async with compressing(plane) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        monkeypatch.setattr(zlib, "compressobj", fails)
        for size in (4, LARGE):
            error = await refused(stub.ModelInfer(ask("echo", size)))
            assert error.code() is CODE.UNKNOWN
            assert "no memory" in error.details()
