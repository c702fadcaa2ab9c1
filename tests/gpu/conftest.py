"""Tests of a real GPU. Without one each is skipped, under CI=true too: no program that could be brought makes one."""

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import onnxruntime
import openai
import pytest
import torch
from tests.peers.cache import cache_root
from tests.peers.server import Server
from tests.runtime.backends.conftest import folder_in, host, model_folder, responder
from tests.runtime.service.conftest import Repository, repository

from argosy.environments import inventory
from argosy.environments.errors import EnvironmentFailedError
from argosy.environments.installing import Request, install
from argosy.environments.recipes import Device, recipe
from argosy_common.engine_folders import searched
from argosy_runtime.backends.onnxruntime import options
from argosy_runtime.dataplane import DataPlane
from argosy_runtime.execution.devices import visible_gpus
from argosy_runtime.repository.options import ControlMode, RepositoryOptions

__all__ = ["folder_in", "host", "model_folder", "repository", "responder"]

PYTHONS = {"tensorrtllm": "3.12"}
"""The Python of engines' environments where it is not this one: NVIDIA's packages are for 3.12, which uv brings."""


@pytest.fixture(scope="session")
def cuda() -> torch.device:
    """Return the first GPU, for fixtures that several tests share."""
    if not torch.cuda.is_available():
        pytest.skip(
            f"no GPU: torch {torch.__version__} cannot use CUDA here. Where there is one, with torch for CUDA: make gpu"
        )
    return torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def gpu(cuda: torch.device) -> torch.device:
    """Return the first GPU."""
    return cuda


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    """Yield OpenAI's client of the module's server of language models."""
    with openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def engine_environment(cuda: torch.device) -> Callable[[str], Path]:
    """Return a function that returns an engine's environment for CUDA: one that the server finds, or a new one.

    The test is skipped where the engine's packages cannot be had.
    """

    def environment(engine: str) -> Path:
        for present in inventory.installed(searched(os.environ)):
            if present.engine == engine and (present.record is None or present.record.device is Device.CUDA):
                return present.folder
        request = Request(
            recipe(engine, Device.CUDA, lambda: True),
            cache_root() / "engines-cuda",
            PYTHONS.get(engine, sys.executable),
        )
        try:
            folder, _ = install(request, print)
        except EnvironmentFailedError as error:
            pytest.skip(f"no {engine} for CUDA: {error}")
        return folder

    return environment


@pytest.fixture
def cuda_provider() -> None:
    """Skip the test where ONNX Runtime cannot use the GPU."""
    if options.CUDA not in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime has no CUDA provider: pip install onnxruntime-gpu in its place")


@pytest.fixture
async def plane(repository: Repository) -> AsyncIterator[Callable[[], Awaitable[DataPlane]]]:
    """Yield a function that starts a data plane on the repository, with the machine's GPUs."""
    planes: list[DataPlane] = []

    async def start() -> DataPlane:
        settings: dict[str, Any] = {"load_timeout": 120.0, "unload_grace": 5.0}
        paths: tuple[Path, ...] = (repository.path,)
        gpus = {device.ordinal: device.compute_capability for device in visible_gpus()}
        planes.append(DataPlane(RepositoryOptions(paths, ControlMode.EXPLICIT, **settings), gpus=gpus))
        await planes[-1].start()
        return planes[-1]

    yield start
    for plane in planes:
        await plane.close(grace=5)
