"""Errors that a real GPU raises: their types and words, and that the model answers again afterwards."""

import io
from collections.abc import Awaitable, Callable

import numpy as np
import pytest
import torch
from tests.runtime.service.conftest import Repository, infer

from argosy_runtime.dataplane import DataPlane
from argosy_runtime.errors import FailureReason, ServingError
from argosy_runtime.messages import InferRequest, Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")

CONFIG = """
name: "lookup" backend: "pytorch"
input [ { name: "rows" data_type: TYPE_INT64 dims: [ 1 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { kind: KIND_GPU } ]
"""
PROCESS = 'parameters { key: "ISOLATION" value { string_value: "process" } }'


class Lookup(torch.nn.Module):
    """Return a row of its table; negative numbers allocate so many GiB first."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(32, dtype=torch.float32).reshape(8, 4))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if bool(rows[0] < 0):
            size = int(-rows[0]) * 1024 * 1024 * 1024
            return torch.zeros([size], dtype=torch.uint8, device=rows.device)[:4].float()
        table: torch.Tensor = self.table
        return table[rows][0]


def model() -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Lookup()), buffer)  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def row(number: int) -> InferRequest:
    return InferRequest("lookup", {"rows": Tensor("rows", "INT64", np.array([number], np.int64))})


async def loaded(repository: Repository, plane: Callable[[], Awaitable[DataPlane]], extra: str = "") -> DataPlane:
    repository.write("lookup", {"1/model.pt": model()}, CONFIG + extra)
    started = await plane()
    await started.load("lookup", None, {})
    return started


async def test_a_process_with_a_device_side_assert_is_replaced(
    repository: Repository, plane: Callable[[], Awaitable[DataPlane]]
) -> None:
    started = await loaded(repository, plane, PROCESS)
    assert (await infer(started, row(1))).outputs[0].array.tolist() == [4, 5, 6, 7]
    for _ in range(2):
        with pytest.raises(ServingError) as raised:
            await infer(started, row(1_000_000))
        assert "device-side assert triggered" in raised.value.device_error
        assert (await infer(started, row(2))).outputs[0].array.tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize("extra", ["", PROCESS], ids=["thread", "process"])
async def test_without_memory_a_request_fails_and_the_next_is_answered(
    repository: Repository, plane: Callable[[], Awaitable[DataPlane]], extra: str
) -> None:
    started = await loaded(repository, plane, extra)
    with pytest.raises(ServingError, match="out of memory") as raised:
        await infer(started, row(-1000))
    assert raised.value.reason is FailureReason.OUT_OF_MEMORY
    assert raised.value.device_error == ""
    assert (await infer(started, row(3))).outputs[0].array.tolist() == [12, 13, 14, 15]
