"""A data plane that is slow, fails and never ends, and clients that ask it."""

import asyncio
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import grpc
import numpy as np
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded
from tests.runtime.frontends.conftest import FakePlane
from tritonclient.grpc import model_config_pb2 as mc
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import internal, not_found
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor

CODE = grpc.StatusCode
METHOD = "/inference.GRPCInferenceService/"
PATIENCE_S = 60


class Endless:
    """A request whose model answers until it is cancelled, as fast as it may."""

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
        data = Tensor("OUT", "UINT8", np.full(self.plane.endless_size, self.sent % 256, np.uint8))
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
        self.endless_size = 10_000
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


def ask(model: str, size: int = 4, request_id: str = "") -> pb.ModelInferRequest:
    request = pb.ModelInferRequest(model_name=model, id=request_id)
    request.inputs.add(name="IN", datatype="FP32", shape=[size // 4])
    request.raw_input_contents.append(bytes(range(256)) * (size // 256) + bytes(size % 256))
    return request


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value


class Raw:
    """A client that says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="latin-1"))
        self._h2.initiate_connection()

    async def ask(self, body: bytes, **changes: str) -> dict[str, str]:
        """Return the head of a response."""
        stream_id = self.begin(body, **changes)
        while True:
            for event in await self._events():
                if isinstance(event, ResponseReceived) and event.stream_id == stream_id:
                    return dict(event.headers)

    async def messages(self, body: bytes, **changes: str) -> list[bytes]:
        """Return the messages of a full response, which are not compressed."""
        stream_id, data = self.begin(body, **changes), b""
        while True:
            for event in await self._events():
                if isinstance(event, DataReceived) and event.stream_id == stream_id:
                    self._h2.acknowledge_received_data(event.flow_controlled_length, stream_id)
                    data += event.data
                elif isinstance(event, StreamEnded) and event.stream_id == stream_id:
                    return list(_unframed(data))
            self._writer.write(self._h2.data_to_send())

    def begin(self, body: bytes, **changes: str) -> int:
        """Send a whole request; the number of its stream."""
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
        return stream_id

    def reset(self, stream_id: int) -> None:
        """Give a request up."""
        self._h2.reset_stream(stream_id)
        self._writer.write(self._h2.data_to_send())

    async def _events(self) -> list[Event]:
        data = await asyncio.wait_for(self._reader.read(65536), PATIENCE_S)
        return self._h2.receive_data(data)


def _unframed(data: bytes) -> Iterator[bytes]:
    while data:
        compressed, size = struct.unpack_from(">BI", data)
        assert not compressed
        yield data[5 : 5 + size]
        data = data[5 + size :]


def framed(message: bytes, compressed: int = 0) -> bytes:
    return struct.pack(">BI", compressed, len(message)) + message
