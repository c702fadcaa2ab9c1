"""A data plane on a repository of small models, in this process; the models' own processes are real."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from pathlib import Path
from textwrap import dedent, indent

import numpy as np
import pytest
from tests.waiting import until

from argosy_runtime.dataplane import DataPlane
from argosy_runtime.frontends.response_stream import ResponseStream
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.repository.options import ControlMode, RepositoryOptions
from argosy_runtime.telemetry.tracing.options import TraceOptions

CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
dynamic_batching { }
"""

MODEL = """
import os, time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
{initialize}

    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            y = x
{execute}
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)]))
        return answers
"""


class Repository:
    """Writes models into a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(
        self, name: str, initialize: str = "pass", execute: str = "pass", config: str = CONFIG, version: int = 1
    ) -> Path:
        """Write a Python model; `execute` reads x and sets y."""
        source = MODEL.format(initialize=indent(dedent(initialize), " " * 8), execute=indent(dedent(execute), " " * 12))
        return self.write(name, {f"{version}/model.py": source}, config)

    def write(self, name: str, files: dict[str, str | bytes], config: str) -> Path:
        """Write any files."""
        folder = self.path / name
        for relative, content in {"config.pbtxt": config, **files}.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Return an empty repository."""
    path = tmp_path / "models"
    path.mkdir()
    return Repository(path)


Serve = Callable[..., Awaitable[DataPlane]]


@pytest.fixture
async def serve(repository: Repository) -> AsyncIterator[Serve]:
    """Yield a function that starts a data plane on the repository; close it at the end."""
    planes: list[DataPlane] = []

    async def start(
        mode: ControlMode = ControlMode.EXPLICIT,
        strict_readiness: bool = True,
        tracing: TraceOptions | None = None,
        **options: object,
    ) -> DataPlane:
        settings = {"load_timeout": 30.0, "unload_grace": 5.0, **options}
        plane = DataPlane(
            RepositoryOptions(**{"paths": (repository.path,), "control_mode": mode, **settings}),
            gpus={},
            strict_readiness=strict_readiness,
            tracing=tracing,
        )
        planes.append(plane)
        await plane.start()
        return plane

    yield start
    for plane in planes:
        await plane.close(grace=5)


class Gate:
    """Holds a model up: `code` says that it is at work and waits there until `open`, which makes the file `opened`."""

    def __init__(self, folder: Path) -> None:
        self._reached, self.opened = folder / "reached", folder / "opened"
        folder.mkdir()

    @property
    def code(self) -> str:
        """An expression for the model."""
        opened = f"iter(lambda: os.path.exists({str(self.opened)!r}), True)"
        return f"(open({str(self._reached)!r}, 'w').close(), [time.sleep(0.005) for _ in {opened}])"

    async def reached(self) -> None:
        """Wait until a model is at work."""
        await until(self._reached.exists)

    def open(self) -> None:
        """Let it go on, and all later requests."""
        self.opened.touch()

    def close(self) -> None:
        """Block later requests."""
        self.opened.unlink()
        self._reached.unlink()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Return a closed gate."""
    return Gate(tmp_path / "gate")


def ask(name: str, *values: float, version: str = "", **fields: object) -> InferRequest:
    """Return a request of one row for each value."""
    array = np.array(values or (1.0,), np.float32).reshape(-1, 1)
    return InferRequest(name, {"X": Tensor("X", "FP32", array)}, model_version=version, **fields)


async def single_response(plane: DataPlane, request: InferRequest) -> InferResponse:
    """Return the one response to a request; cancelled, cancel the request. Raises ServingError where it is refused."""
    answer: asyncio.Future[InferResponse] = asyncio.get_running_loop().create_future()

    def deliver(response: InferResponse) -> None:
        if not answer.done():
            answer.set_result(response)

    submission = plane.submit(request, deliver, single=True)
    try:
        return await answer
    except asyncio.CancelledError:
        submission.cancel()
        raise


async def infer(plane: DataPlane, request: InferRequest) -> InferResponse:
    """Return the one response, or raise its error."""
    response = await single_response(plane, request)
    if response.error is not None:
        raise response.error
    return response


async def responses(plane: DataPlane, request: InferRequest) -> AsyncGenerator[InferResponse, None]:
    """Yield every response; closing this cancels the request."""
    async with ResponseStream(plane.submit, request) as stream:
        async for response in stream:
            yield response


async def value(plane: DataPlane, name: str, x: float = 1.0, version: str = "") -> float:
    """Return one answer's Y."""
    response = await infer(plane, ask(name, x, version=version))
    return float(response.outputs[0].array[0, 0])


async def states(plane: DataPlane) -> dict[str, str]:
    """Return the index: name:version → state."""
    return {f"{m.name}:{m.version}".rstrip(":"): m.state for m in (await plane.index(ready_only=False)).models}


async def settled(plane: DataPlane) -> None:
    """Wait until nothing is loading or unloading."""

    def states() -> list[str]:
        return [v.state for record in plane.registry.records.values() for v in record.versions.values()]

    await until(lambda: not {"LOADING", "UNLOADING"} & set(states()))


async def reason(plane: DataPlane, name: str) -> str:
    """Return why a model is unavailable, from the index."""
    index = await plane.index(ready_only=False)
    return next(m.reason for m in index.models if m.name == name)
