"""A gRPC listener over a fake data plane, and clients of it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from tests.runtime.frontends.grpc.calling import Plane, Raw
from tritonclient.grpc import service_pb2_grpc

from argosy_runtime.frontends.grpc import listener as grpc_frontend


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


@pytest.fixture
async def raw(listener: grpc_frontend.GrpcListener) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    yield Raw(reader, writer)
    writer.close()
