"""An ensemble of models on a GPU: one copy there, one copy back."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import pytest
from tests.runtime.backends.fake_device import count_transfers
from tests.runtime.service.conftest import Repository, infer
from tests.runtime.service.device_models import chain, write_models

from argosy_runtime.dataplane import DataPlane
from argosy_runtime.messages import InferRequest, Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")

Start = Callable[[], Awaitable[DataPlane]]


def ask(*values: float) -> InferRequest:
    return InferRequest("e", {"IN": Tensor("IN", "FP32", np.array([values], np.float32))})


async def loaded(repository: Repository, plane: Start, *steps: str) -> DataPlane:
    write_models(repository, "KIND_GPU")
    repository.write("e", {"1/keep": ""}, chain("e", *steps))
    started = await plane()
    for name in (*dict.fromkeys(steps), "e"):
        await started.load(name, None, {})
    return started


@pytest.mark.parametrize("steps", [("twice", "twice", "twice"), ("twice", "square", "twice")], ids=["torch", "both"])
async def test_nothing_comes_to_the_host_between_steps(
    request: pytest.FixtureRequest, repository: Repository, plane: Start, steps: tuple[str, ...]
) -> None:
    if "square" in steps:
        request.getfixturevalue("cuda_provider")
    started = await loaded(repository, plane, *steps)
    with count_transfers() as counts:
        response = await infer(started, ask(1, 2, 3, 4))
    assert response.outputs[0].array.tolist() == [[8, 32, 72, 128] if "square" in steps else [8, 16, 24, 32]]
    assert (counts.to_device, counts.to_host) == (1, 1)


async def test_many_requests_at_once(repository: Repository, plane: Start) -> None:
    started = await loaded(repository, plane, "twice", "twice")
    responses = await asyncio.gather(*(infer(started, ask(n, n, n, n)) for n in range(100)))
    assert [response.outputs[0].array[0, 0] for response in responses] == [4 * n for n in range(100)]
