"""Messages of any size, language and compression, and what is left of them."""

import asyncio
import contextlib
import gc
import struct
from typing import Any

import grpc
import pytest
from tests.runtime.frontends.grpc.calling import CODE, METHOD, Plane, Raw, ask, framed, refused
from tests.waiting import until
from tritonclient.grpc import service_pb2_grpc

from argosy_runtime.frontends.grpc import listener as grpc_frontend
from argosy_runtime.frontends.grpc.rpc.calls import Call
from argosy_runtime.http2 import Stream
from argosy_runtime.messages import InferRequest


async def test_an_unknown_method(channel: grpc.aio.Channel) -> None:
    error = await refused(channel.unary_unary(METHOD + "Nope")(b"x"))
    assert (error.code(), error.details()) == (CODE.UNIMPLEMENTED, "Method not found!")


async def test_what_is_no_message(channel: grpc.aio.Channel) -> None:
    assert (await refused(channel.unary_unary(METHOD + "ModelReady")(b"\xff"))).code() is CODE.INTERNAL
    assert (await refused(channel.unary_unary(METHOD + "ModelInfer")(b"\xff"))).code() is CODE.INTERNAL


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
    headers = {"path": METHOD + "ModelInfer", "grpc_accept_encoding": "identity, gzip"}
    raw = Raw(reader, writer)
    assert (await raw.ask(body, **headers))["grpc-encoding"] == "gzip"
    assert "grpc-encoding" not in await raw.ask(body, path=headers["path"])
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


async def test_requests_like_others_are_made_of_a_template(stub: Any, plane: Plane) -> None:
    for number in range(4):
        request = ask("echo", 64, str(number))
        request.raw_input_contents[0] = struct.pack("16f", *range(number, number + 16))
        answer = await stub.ModelInfer(request)
        assert (answer.id, answer.raw_output_contents) == (str(number), request.raw_input_contents)
    templates = [request.template for request in plane.requests]
    assert templates[:2] == [None, None]
    assert templates[2] is templates[3] is not None
    wrong = ask("echo", 64)
    wrong.raw_input_contents[0] = b"short"
    # It is decoded, and has more rows than the model takes.
    assert "inference request batch-size must be <= 8" in (await refused(stub.ModelInfer(wrong))).details()
    async for response in stub.ModelStreamInfer(iter([ask("echo", 64, "s")])):
        assert response.infer_response.id == "s"
    assert plane.requests[-1].template is templates[2]


@pytest.mark.parametrize("model", ["echo", "busy", "fails", "nope"])
async def test_a_call_that_is_over_keeps_nothing_for_the_collector(stub: Any, plane: Plane, model: str) -> None:
    gc.collect()
    gc.disable()
    try:
        before = _of_calls()
        for _ in range(20):
            with contextlib.suppress(grpc.aio.AioRpcError):
                await stub.ModelInfer(ask(model, 100_000))
        assert len(plane.requests) == 20
        plane.requests.clear()
        # The last one may still be on the stack.
        assert _of_calls() <= before + 3
    finally:
        gc.enable()


async def test_a_stream_that_is_over_keeps_nothing_for_the_collector(stub: Any, plane: Plane) -> None:
    gc.collect()
    gc.disable()
    try:
        before = _of_calls()
        for leaves in (False, True) * 10:
            stream = stub.ModelStreamInfer(iter([ask("echo", 100_000), ask("echo", 100_000)]))
            async for _ in stream:
                if leaves:
                    stream.cancel()
                    break
        assert plane.requests
        plane.requests.clear()
        await until(lambda: _of_calls() <= before + 3)
    finally:
        gc.enable()


def _of_calls() -> int:
    """Return how many calls, their streams and their requests there are."""
    # By type: isinstance asks for __class__, which lazy and deprecated objects of other packages answer with warnings.
    return sum(issubclass(type(one), InferRequest | Call | Stream) for one in gc.get_objects())
