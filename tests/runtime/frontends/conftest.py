"""A fake data plane behind real sockets: one HTTP, one gRPC and one metrics listener in a thread of their own."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import uvloop
from tests.runtime.shared_memory.memories import Memories
from tritonclient.grpc import model_config_pb2 as mc
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import (
    DecoupledModelError,
    ErrorKind,
    ServingError,
    internal,
    invalid,
    not_found,
    unavailable,
)
from argosy_runtime.frontends import metrics as metrics_frontend
from argosy_runtime.frontends.grpc import listener as grpc_frontend
from argosy_runtime.frontends.http import app as http_frontend
from argosy_runtime.frontends.http.wire.listener import HttpListener
from argosy_runtime.frontends.restrictions import Api, Restriction
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor
from argosy_runtime.modelconfig.datatypes import config_type
from argosy_runtime.shared_memory import system
from argosy_runtime.shared_memory.regions import ClientRegions
from argosy_runtime.telemetry.log_settings import LogSettings, Setting
from argosy_runtime.telemetry.tracing.options import TraceOptions
from argosy_runtime.telemetry.tracing.tracer import Tracer

LIMIT = 1 << 20
MODELS = {
    "echo": ([("IN", "FP32", [-1, -1])], 8),
    "any": ([("A", "INT32", [2]), ("B", "BYTES", [2])], 0),
    "text": ([("text", "BYTES", [1])], 0),
    "slow": ([("IN", "FP32", [-1])], 0),
    "fails": ([("IN", "FP32", [-1])], 0),
    "busy": ([("IN", "FP32", [-1])], 0),
    "repeat": ([("IN", "INT32", [1])], 0),
    "half": ([("IN", "FP16", [-1])], 0),
}
DECOUPLED = {"repeat"}


class _Running:
    """A request that the fake is answering."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        self._task.cancel()

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass


def client_regions(*, allowed: bool = False) -> ClientRegions:
    """Return the regions of a server, which takes system memory, and memory of GPU 0."""
    return ClientRegions(system.open_memory, Memories().open_cuda, allowed=allowed)


class FakePlane:
    """Echoes inputs as outputs: IN→OUT, A→OUT_A … `slow` waits for ever, `repeat` answers IN times."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything seen."""
        self.is_ready = True
        self.failure = "the model broke"
        self.requests: list[InferRequest] = []
        self.started = threading.Event()
        self.cancelled = threading.Event()
        self.released = threading.Event()
        self.loaded: list[tuple[str, str | None, dict[str, bytes]]] = []
        self.unloaded: list[tuple[str, bool]] = []
        self.registered: dict[Path, tuple[str, str]] = {}
        self.log = LogSettings()
        self.tracer = Tracer(TraceOptions())
        self.regions = client_regions()

    def live(self) -> bool:
        return True

    def ready(self) -> bool:
        return self.is_ready

    def model_ready(self, name: str, version: str) -> bool:
        return name in MODELS and version in ("", "1")

    def readiness_check(self, name: str = "", version: str = "") -> None:
        """Return None: its models do not check themselves."""

    def server_metadata(self) -> pb.ServerMetadataResponse:
        return pb.ServerMetadataResponse(name="argosy", version="0.1.0", extensions=["classification"])

    def model_metadata(self, name: str, version: str) -> pb.ModelMetadataResponse:
        inputs, _ = self._declared(name)
        metadata = pb.ModelMetadataResponse(name=name, versions=["1"], platform="python")
        for tensor, datatype, shape in inputs:
            metadata.inputs.add(name=tensor, datatype=datatype, shape=shape)
            metadata.outputs.add(name=_output_name(tensor), datatype=datatype, shape=shape)
        return metadata

    def model_config(self, name: str, version: str) -> mc.ModelConfig:
        config = mc.ModelConfig(name=name, backend="python", max_batch_size=self._declared(name)[1])
        config.model_transaction_policy.decoupled = name in DECOUPLED
        tensors, batch = self._declared(name)
        for tensor, datatype, shape in tensors:
            dims = shape[1:] if batch else shape
            kind = config_type(datatype)
            config.input.add(name=tensor, data_type=kind, dims=dims)
            config.output.add(name=_output_name(tensor), data_type=kind, dims=dims)
        return config

    def statistics(self, name: str, version: str) -> pb.ModelStatisticsResponse:
        statistics = pb.ModelStatisticsResponse()
        for model in [name] if name else MODELS:
            self._declared(model)
            statistics.model_stats.add(name=model, version="1", inference_count=len(self.requests))
        return statistics

    async def demand(self, name: str, version: str) -> None:
        """Do nothing: its models are loaded."""

    def when_loaded(self, name: str, version: str, then: object) -> bool:
        """Return False: its models are loaded."""
        return False

    def pin(self, requests: Sequence[InferRequest]) -> None:
        """Do nothing: its models have one version."""

    def labels(self, name: str, version: str, output: str) -> Sequence[str]:
        return ["cat", "dog"] if name == "echo" else []

    async def index(self, ready_only: bool) -> pb.RepositoryIndexResponse:
        index = pb.RepositoryIndexResponse()
        index.models.add(name="echo", version="1", state="READY")
        if not ready_only:
            index.models.add(name="never")
        return index

    async def divide(self, name: str) -> None:
        """Do nothing: its models have one version."""

    async def load(self, name: str, config: str | None, files: Mapping[str, bytes]) -> None:
        self.loaded.append((name, config, dict(files)))
        if name == "bad":
            raise invalid("failed to load 'bad'")
        if name == "large":
            raise internal("load failed: CUDA out of memory")

    async def unload(self, name: str, unload_dependents: bool) -> None:
        self.unloaded.append((name, unload_dependents))

    async def register(self, repository: Path, folder: str, name: str) -> None:
        if repository in self.registered:
            raise ServingError(ErrorKind.ALREADY_EXISTS, f"model repository '{repository}' has already been registered")
        self.registered[repository] = (folder, name)

    def unregister(self, repository: Path) -> None:
        del self.registered[repository]

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        self.requests.append(request)
        self._declared(request.model_name)
        if single and request.model_name in DECOUPLED:
            raise DecoupledModelError
        if request.model_name == "busy":
            raise unavailable("Exceeds maximum queue size")
        return _Running(asyncio.get_running_loop().create_task(self._run(request, deliver)))

    async def _run(self, request: InferRequest, deliver: Deliver) -> None:
        if request.model_name == "slow":
            await self._wait()
        if request.model_name == "fails":
            deliver(_response(request, error=internal(self.failure)))
        elif request.model_name == "repeat":
            for turn in range(int(request.inputs["IN"].array[0])):
                await asyncio.sleep(0)
                count = Tensor("OUT", "INT32", np.array([turn], np.int32))
                deliver(_response(request, outputs=[count], final=False))
            deliver(_response(request))
        else:
            deliver(_echo(request))

    def log_settings(self) -> dict[str, Setting]:
        return self.log.values()

    def change_log_settings(self, changes: Mapping[str, Setting]) -> None:
        self.log.change(changes)

    def trace_settings(self, name: str) -> dict[str, str | Sequence[str]]:
        return self.tracer.settings(name)

    def change_trace_settings(self, name: str, changes: Mapping[str, int | None]) -> None:
        self.tracer.change(name, changes)

    async def metrics(self) -> AsyncIterator[bytes]:
        yield b"nv_inference_"
        yield b"count 1\n"

    async def _wait(self) -> None:
        self.started.set()
        try:
            while not self.released.is_set():  # noqa: ASYNC110  (set from the tests' threads)
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    @staticmethod
    def _declared(name: str) -> tuple[list[tuple[str, str, list[int]]], int]:
        if name not in MODELS:
            raise not_found(f"Request for unknown model: '{name}' is not found")
        return MODELS[name]


def _output_name(name: str) -> str:
    return "OUT" if name == "IN" else f"OUT_{name}"


def _echo(request: InferRequest) -> InferResponse:
    outputs = [tensor.renamed(_output_name(tensor.name)) for tensor in request.inputs.values()]
    if request.requested_outputs:
        outputs = [tensor for tensor in outputs if tensor.name in request.requested_outputs]
    return _response(request, outputs=outputs)


def _response(
    request: InferRequest,
    outputs: Sequence[Tensor] | None = None,
    error: ServingError | None = None,
    final: bool = True,
) -> InferResponse:
    """Return a response; without outputs and error it is a bare final flag."""
    answered = None if outputs is None else list(outputs)
    return InferResponse(request.model_name, "1", request.id, answered, {}, error, final)


@dataclass
class Running:
    """The listeners' ports, the plane behind them, and their event loop."""

    plane: FakePlane
    http: int
    grpc: int
    metrics: int
    restricted_http: int
    restricted_grpc: int
    loop: asyncio.AbstractEventLoop = field(repr=False, kw_only=True)


SECRET = Restriction("Open-Sesame", "please")


async def _listen(plane: FakePlane) -> list[HttpListener | grpc_frontend.GrpcListener]:
    http_options = http_frontend.HttpOptions
    grpc_options = grpc_frontend.GrpcListenOptions
    host = "127.0.0.1"
    restricted = dict.fromkeys((Api.MODEL_REPOSITORY, Api.MODEL_INDEX, Api.INFERENCE), SECRET)
    return [
        await http_frontend.serve(plane, http_options(host=host, port=0, max_input_size=LIMIT)),
        await grpc_frontend.serve(plane, grpc_options(host=host, port=0, header_forward_pattern="^fwd-")),
        await metrics_frontend.serve(plane, metrics_frontend.MetricsOptions(host=host, port=0)),
        await http_frontend.serve(
            plane, http_options(host=host, port=0, restricted=restricted, header_forward_pattern="^fwd-|triton")
        ),
        await grpc_frontend.serve(plane, grpc_options(host=host, port=0, restricted=restricted)),
    ]


@pytest.fixture(scope="session")
def _running() -> Iterator[Running]:
    plane = FakePlane()
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listeners = asyncio.run_coroutine_threadsafe(_listen(plane), loop).result(10)

    async def stop() -> None:
        await asyncio.gather(*(listener.stop(0.2) for listener in listeners))

    try:
        yield Running(plane, *(listener.port for listener in listeners), loop=loop)
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def running(_running: Running) -> Running:
    """Return the listeners, their plane as new."""
    _running.plane.reset()
    return _running
