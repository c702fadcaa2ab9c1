"""Parameters of a request that cannot be read name no adapter: the model says what is wrong with them."""

import asyncio
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language.sampling import from_json
from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig import parse_text
from argosy_runtime.repository.serving.adapters import ServedAdapter, named_adapter
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.tensors import raw_tensor

UNREADABLE = (b'{"lora_name": "\xff"}', b'{"lora_name": ' + b"[" * 50_000, b'{"lora_name": ')


def request_with(text: bytes) -> InferRequest:
    tensor = raw_tensor("sampling_parameters", "BYTES", (1,), struct.pack("<I", len(text)) + text)
    return InferRequest("a", {tensor.name: tensor})


def adapter_of(base: Any) -> ServedAdapter:
    folder = SimpleNamespace(path=Path("a"), version_path=lambda version: Path(f"a/{version}"))
    prepared: Any = SimpleNamespace(labels={}, folder=folder)
    return ServedAdapter(prepared, 1, parse_text('name: "a"'), lambda: base, ModelStatistics())


@pytest.mark.parametrize("text", UNREADABLE)
def test_parameters_that_cannot_be_read_name_none(text: bytes) -> None:
    assert named_adapter(request_with(text)) == ""
    with pytest.raises(ServingError) as refused:
        from_json(text)
    assert refused.value.kind is ErrorKind.INVALID_ARG


@pytest.mark.parametrize("text", UNREADABLE)
def test_an_adapter_leaves_it_to_its_model_to_refuse_them(text: bytes) -> None:
    async def run() -> bytes:
        passed: list[InferRequest] = []
        base = SimpleNamespace(submit=lambda request, deliver: passed.append(request))
        adapter_of(base).submit(request_with(text), lambda response: None)
        return bytes(passed[0].inputs["sampling_parameters"].data[4:])

    assert asyncio.run(run()) == text


def test_a_request_that_fails_in_its_model_runs_no_longer() -> None:
    def submit(request: InferRequest, deliver: object) -> None:
        raise KeyError

    async def run() -> None:
        adapter = adapter_of(SimpleNamespace(submit=submit))
        with pytest.raises(KeyError):
            adapter.submit(request_with(b"{}"), lambda response: None)
        assert adapter.running == 0
        await asyncio.wait_for(adapter._open.wait_for_none(60), 30)

    asyncio.run(run())
