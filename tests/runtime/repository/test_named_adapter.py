"""Parameters of a request that cannot be read name no adapter: the model says what is wrong with them."""

import asyncio
import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language.adapter_names import named_adapter, set_adapter
from argosy_runtime.language.sampling import from_json
from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig import parse_text
from argosy_runtime.repository.serving.adapters import ServedAdapter
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.tensors import Tensor, raw_tensor, string_array

UNREADABLE = (b'{"lora_name": "\xff"}', b'{"lora_name": ' + b"[" * 50_000, b'{"lora_name": ')


def request_with(text: bytes) -> InferRequest:
    tensor = raw_tensor("sampling_parameters", "BYTES", (1,), struct.pack("<I", len(text)) + text)
    return InferRequest("a", {tensor.name: tensor})


def adapter_of(base: Any) -> ServedAdapter:
    folder = SimpleNamespace(path=Path("a"), version_path=lambda version: Path(f"a/{version}"))
    prepared: Any = SimpleNamespace(labels={}, folder=folder)
    return ServedAdapter(prepared, 1, parse_text('name: "a"'), lambda: base, ModelStatistics(), "a")


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


def by_input(*names: bytes) -> Tensor:
    return Tensor("lora_name", "BYTES", string_array(names, (len(names),)))


def request_of(*tensors: Tensor, **parameters: Any) -> InferRequest:
    return InferRequest("a", {tensor.name: tensor for tensor in tensors}, parameters=parameters)


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (request_of(by_input(b"x")), "x"),
        (request_of(by_input(b"x", b"y")), ""),
        (request_of(by_input(b"\xff")), ""),
        (request_with(b'{"lora_name": "x"}'), "x"),
        (request_with(b'{"lora\\u005fname": "x"}'), "x"),
        (request_with(b'{"lora_name": 7}'), ""),
        (request_of(lora_name="x"), "x"),
        (request_of(), ""),
    ],
)
def test_an_adapter_is_named_as_the_model_reads_it(request_: InferRequest, name: str) -> None:
    assert named_adapter(request_) == name


def test_what_a_request_says_otherwise_stays() -> None:
    request = request_of(temperature=0.5)
    set_adapter(request, "a", by_input=False)
    (text,) = request.inputs["sampling_parameters"].array.tolist()
    assert json.loads(text) == {"temperature": 0.5, "lora_name": "a"}
    set_adapter(request, "a", by_input=True)
    assert request.inputs["lora_name"].array.tolist() == [b"a"]
    assert request.inputs["sampling_parameters"].array.tolist() == [text]


@pytest.mark.parametrize("named_by_input", [True, False])
@pytest.mark.parametrize(
    "request_", [request_of(by_input(b"x")), request_with(b'{"lora_name": "x"}'), request_of(lora_name="x")]
)
def test_a_request_that_names_another_adapter_is_refused(request_: InferRequest, named_by_input: bool) -> None:
    with pytest.raises(ServingError, match="'lora_name' names another adapter than the model 'a'"):
        set_adapter(request_, "a", by_input=named_by_input)


def test_a_name_that_cannot_be_read_is_left_to_the_model() -> None:
    names = by_input(b"x", b"y")
    request = request_of(names)
    set_adapter(request, "a", by_input=True)
    assert request.inputs == {"lora_name": names}
