"""Tests of a real GPU. Without one each is skipped, under CI=true too: no program that could be brought makes one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from tests.runtime.backends.conftest import folder_in, host, model_folder, responder
from tests.runtime.service.conftest import Repository, repository

from argosy_runtime.backends.onnxruntime import options
from argosy_runtime.dataplane import DataPlane
from argosy_runtime.execution.devices import visible_gpus
from argosy_runtime.repository.options import ControlMode, RepositoryOptions

__all__ = ["folder_in", "host", "model_folder", "repository", "responder"]


@pytest.fixture(autouse=True)
def gpu() -> torch.device:
    """Return the first GPU."""
    if not torch.cuda.is_available():
        pytest.skip(
            f"no GPU: torch {torch.__version__} cannot use CUDA here. Where there is one, with torch for CUDA: make gpu"
        )
    return torch.device("cuda", 0)


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
