"""gRPC calls beyond plain answers: deadlines, back-pressure, health, leaving."""

import asyncio
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.runtime.frontends.grpc.calling import CODE, PATIENCE_S, Endless, Plane, ask, refused
from tests.waiting import until
from tritonclient.grpc import model_config_pb2 as mc
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.frontends.grpc import listener as grpc_frontend
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor


async def test_a_deadline_ends_the_call_and_its_request(stub: Any, plane: Plane) -> None:
    error = await refused(stub.ModelInfer(ask("slow"), timeout=0.05))
    assert error.code() is CODE.DEADLINE_EXCEEDED
    await until(plane.cancelled.is_set)


async def test_a_failure_while_a_model_leaves_keeps_its_status(stub: Any) -> None:
    error = await refused(stub.ModelInfer(ask("leaving")))
    assert (error.code(), error.details()) == (CODE.INTERNAL, "the model's process died")


async def test_a_load_goes_on_when_its_client_hangs_up(stub: Any, plane: Plane) -> None:
    call = stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="m"))
    pending = asyncio.ensure_future(call)
    await asyncio.wait_for(plane.loading.wait(), PATIENCE_S)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending
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
    overdue = asyncio.ensure_future(stub.ModelInfer(ask("slow", request_id="late")))
    await until(plane.started.is_set)
    first = set(listener._protocols)
    listener.drain()
    assert (await stub.ModelInfer(ask("echo", request_id="other"))).id == "other"
    plane.released.set()
    assert (await overdue).id == "late"
    await until(lambda: not first & listener._protocols)
    assert (await stub.ModelInfer(ask("echo", request_id="again"))).id == "again"


async def test_the_end_ends_streams_and_watches_behind_what_they_owe(
    listener: grpc_frontend.GrpcListener, channel: grpc.aio.Channel, stub: Any, plane: Plane
) -> None:
    watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
    await watch.read()
    idle, busy = stub.ModelStreamInfer(), stub.ModelStreamInfer()
    await idle.write(ask("echo", request_id="first"))
    assert (await idle.read()).infer_response.id == "first"
    await busy.write(ask("slow", request_id="late"))
    await until(plane.started.is_set)
    plane.is_ready = False
    listener.finish()
    assert [await _ending(call) for call in (watch, idle)] == [CODE.UNAVAILABLE] * 2
    assert not busy.done()
    plane.released.set()
    assert (await busy.read()).infer_response.id == "late"
    assert await _ending(busy) == CODE.UNAVAILABLE


async def _ending(call: Any) -> grpc.StatusCode:
    """Return the status of a call, behind its messages."""
    try:
        while await call.read() is not grpc.aio.EOF:
            """Read on."""
    except grpc.aio.AioRpcError as error:
        return error.code()
    return CODE.OK


async def test_the_end_cancels_what_does_not_finish(
    listener: grpc_frontend.GrpcListener, stub: Any, plane: Plane
) -> None:
    call = asyncio.ensure_future(stub.ModelInfer(ask("slow")))
    await until(plane.started.is_set)
    await listener.stop(0.01)
    assert (await refused(call)).code() is CODE.UNAVAILABLE
    await until(plane.cancelled.is_set)


async def test_an_unexpected_error_is_the_answer_to_its_request_alone(
    stub: Any, plane: Plane, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    submit, model_config = plane.submit, plane.model_config

    def failing(request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        if request.id == "submit":
            raise RuntimeError("broken here")
        if request.id == "encode":
            bad = InferResponse("echo", "1", request.id, [Tensor("\ud800", "FP32", np.zeros(1, np.float32))])
            asyncio.get_running_loop().call_soon(deliver, bad)
            return Endless(plane, request, lambda _: None)
        return submit(request, deliver, single)

    def odd(name: str, version: str) -> mc.ModelConfig:
        if name == "odd":
            raise KeyError("odd")
        return model_config(name, version)

    monkeypatch.setattr(plane, "submit", failing)
    monkeypatch.setattr(plane, "model_config", odd)
    sent = [ask("half", 4, "good"), ask("echo", 4, "submit"), ask("odd"), ask("echo", 4, "encode"), ask("half", 4)]
    answers = [answer async for answer in stub.ModelStreamInfer(iter(sent), timeout=PATIENCE_S)]
    assert [answer.error_message.partition(":")[0] for answer in answers] == [
        "",
        "Unexpected <class 'RuntimeError'>",
        "Unexpected <class 'KeyError'>",
        "Unexpected <class 'UnicodeEncodeError'>",
        "",
    ]
    assert answers[1].infer_response.id == "submit"
    assert caplog.text.count("a request of a stream failed unexpectedly") == 3
    closes = (("triton_grpc_error", "true"),)
    error = await refused(stub.ModelStreamInfer(iter(sent[1:2]), metadata=closes).read())
    assert (error.code(), error.details()) == (CODE.UNKNOWN, "Unexpected <class 'RuntimeError'>: broken here")


async def test_answers_before_an_error_that_ends_the_stream_are_sent(
    stub: Any, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_config, refusing = plane.model_config, asyncio.Event()

    def noting(name: str, version: str) -> mc.ModelConfig:
        if name == "none":
            refusing.set()
        return model_config(name, version)

    monkeypatch.setattr(plane, "model_config", noting)
    sent = [ask("slow", request_id="good"), ask("none")]
    stream = stub.ModelStreamInfer(iter(sent), metadata=(("triton_grpc_error", "true"),))
    answer = asyncio.ensure_future(stream.read())
    await asyncio.wait_for(refusing.wait(), PATIENCE_S)
    plane.released.set()
    assert (await answer).infer_response.id == "good"
    assert (await refused(stream.read())).code() is CODE.NOT_FOUND
