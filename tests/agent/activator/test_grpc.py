"""gRPC by the activator to a real server: queued, passed on, streamed both ways, with the server's statuses."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.agent.activator.standing import endpoint, standing
from tests.peers.server import Server
from tritonclient.grpc import InferInput, service_pb2_grpc
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException

from argosy_agent.activator.grpc.channels import Channels
from argosy_agent.activator.pending import UnreachableError
from argosy_agent.contract.activation import Endpoint


def tensor(name: str, kind: str, values: Any) -> InferInput:
    infer_input = InferInput(name, list(values.shape), kind)
    infer_input.set_data_from_numpy(values)
    return infer_input


ONE = np.array([[1.0, 2.0]], np.float32)


async def test_requests_wait_until_a_server_has_the_model_and_are_answered_by_it(server: Server) -> None:
    large = np.arange(1 << 21, dtype=np.float32).reshape(1, -1)
    async with standing() as at, InferenceServerClient(at.grpc) as client:
        at.says()
        assert await client.is_server_live()
        calls = [
            asyncio.create_task(client.infer("identity", [tensor("INPUT0", "FP32", item)], headers={"x-of": "mine"}))
            for item in (ONE, large)
        ]
        await at.channel.until(**{"the-identity": 2})
        assert await client.is_model_ready("identity")
        at.says(endpoint(server))
        answers = await asyncio.gather(*calls)
        await at.channel.until()
        assert (await client.get_model_metadata("identity")).name == "identity"
        assert (await client.get_inference_statistics("identity")).model_stats[0].name == "identity"
    for answer, expected in zip(answers, (ONE, large), strict=True):
        assert np.array_equal(answer.as_numpy("OUTPUT0"), expected)


async def test_a_stream_waits_with_its_first_request_and_then_passes_both_ways(server: Server) -> None:
    sent, answered = asyncio.Event(), asyncio.Event()

    async def requests() -> AsyncIterator[dict[str, Any]]:
        yield {"model_name": "repeat", "inputs": [tensor("IN", "INT32", np.array([4, 5], np.int32))]}
        sent.set()
        await answered.wait()
        yield {"model_name": "repeat", "inputs": [tensor("IN", "INT32", np.array([6], np.int32))]}

    results: list[int] = []
    async with standing() as at, InferenceServerClient(at.grpc) as client:
        at.says()
        answers = client.stream_infer(requests())

        async def read() -> None:
            async for result, error in answers:
                assert error is None
                results.append(int(result.as_numpy("OUT")[0]))
                if len(results) == 2:
                    answered.set()

        reading = asyncio.create_task(read())
        await sent.wait()
        await at.channel.until(**{"the-repeat": 1})
        at.says(endpoint(server))
        await reading
    assert results == [4, 5, 6]


async def test_a_status_is_the_servers_own(server: Server) -> None:
    async with standing() as at, InferenceServerClient(at.grpc) as client:
        at.says(endpoint(server))
        wrong = tensor("INPUT0", "INT32", np.array([[1]], np.int32))
        with pytest.raises(InferenceServerException) as here:
            await client.infer("identity", [wrong])
        async with InferenceServerClient(server.grpc) as direct:
            with pytest.raises(InferenceServerException) as there:
                await direct.infer("identity", [wrong])
    assert (here.value.status(), here.value.message()) == (there.value.status(), there.value.message())


async def test_a_deadline_ends_the_wait() -> None:
    async with standing() as at, InferenceServerClient(at.grpc) as client:
        at.says()
        with pytest.raises(InferenceServerException) as raised:
            await client.infer("identity", [tensor("INPUT0", "FP32", ONE)], client_timeout=0.5)
        assert raised.value.status() == "StatusCode.DEADLINE_EXCEEDED"
        await at.channel.until()


async def test_one_who_cancels_waits_no_more() -> None:
    async with standing() as at, grpc.aio.insecure_channel(at.grpc) as channel:
        at.says()
        call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(
            pb.ModelInferRequest(model_name="identity")
        )
        await at.channel.until(**{"the-identity": 1})
        call.cancel()
        await at.channel.until()


async def test_a_server_that_does_not_listen_any_more_is_waited_for(server: Server) -> None:
    async with standing() as at, InferenceServerClient(at.grpc) as client:
        at.says(Endpoint("127.0.0.1", 1, 1))
        call = asyncio.create_task(client.infer("identity", [tensor("INPUT0", "FP32", ONE)]))
        await at.channel.until(**{"the-identity": 1})
        at.says(endpoint(server))
        assert np.array_equal((await call).as_numpy("OUTPUT0"), ONE)


async def test_a_channel_that_is_abandoned_fails_no_other_call_that_waits_for_it() -> None:
    channels = Channels()
    nowhere = Endpoint("127.0.0.1", 1, 1)
    try:
        waiting = asyncio.create_task(channels.open(nowhere))
        await asyncio.sleep(0)
        channels.keep(())
        with pytest.raises(UnreachableError):
            await waiting
    finally:
        await channels.close()


async def test_what_is_answered_where_no_server_runs() -> None:
    async with standing("--max-held-bytes=10") as at, grpc.aio.insecure_channel(at.grpc) as channel:
        stub, health = service_pb2_grpc.GRPCInferenceServiceStub(channel), health_pb2_grpc.HealthStub(channel)
        assert not (await stub.ServerReady(pb.ServerReadyRequest())).ready
        assert (await health.Check(health_pb2.HealthCheckRequest())).status == 2
        at.says(timeout_s=0.0)
        while not (await stub.ServerReady(pb.ServerReadyRequest())).ready:
            pass
        assert (await health.Check(health_pb2.HealthCheckRequest())).status == 1
        assert (await stub.ModelReady(pb.ModelReadyRequest(name="identity"))).ready
        assert (await stub.ServerMetadata(pb.ServerMetadataRequest())).name == "argosy"
        for call, code, words in (
            (
                stub.ModelInfer(pb.ModelInferRequest(model_name="identity", id="x")),
                "RESOURCE_EXHAUSTED",
                "larger than max",
            ),
            (stub.ModelConfig(pb.ModelConfigRequest(name="m")), "NOT_FOUND", "nothing is held for model 'm'"),
            (stub.ModelConfig(pb.ModelConfigRequest()), "NOT_FOUND", "nothing is held for model ''"),
            (stub.ModelStatistics(pb.ModelStatisticsRequest(name="identity")), "UNAVAILABLE", "runs nowhere now"),
            (stub.RepositoryIndex(pb.RepositoryIndexRequest()), "UNAVAILABLE", "only a request for inference"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await call
            assert raised.value.code().name == code
            assert words in (raised.value.details() or "")


async def test_bytes_that_are_no_message_are_refused() -> None:
    async with standing() as at, grpc.aio.insecure_channel(at.grpc) as channel:
        at.says()
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        with pytest.raises(grpc.aio.AioRpcError, match="cannot be read") as raised:
            await call(b"\x0a\xff")
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
