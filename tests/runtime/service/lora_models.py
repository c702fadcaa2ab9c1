"""Language models on a stand-in of vLLM, with adapters, and requests to them."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests import lora_files
from tests.runtime.service.conftest import responses

from argosy_runtime.messages import InferRequest, Tensor

STANDINS = Path(__file__).parents[2] / "standins/engines"
ROUTED = 'backend: "variants" parameters {{ key: "variants" value {{ string_value: \'{}\' }} }}'


@pytest.fixture
def vllm(monkeypatch):
    """Let models' processes find the stand-in of vLLM."""
    monkeypatch.syspath_prepend(STANDINS)
    monkeypatch.setenv("PYTHONPATH", str(STANDINS))


def add_base(repository, **arguments: object) -> None:
    """Write the model `base`, whose engine takes adapters."""
    arguments = {"model": "tiny", "enable_lora": True, "max_loras": 4, **arguments}
    repository.write("base", {"1/model.json": json.dumps(arguments)}, 'backend: "vllm"')


def add_adapter(repository, name: str, base: str = "base", version: int = 1, complete: bool = True) -> None:
    """Write an adapter of a model; one that is not complete has no configuration."""
    repository.write(name, {f"{version}/.keep": ""}, "")
    if complete:
        lora_files.write(repository.path / name / str(version))
    config = f'backend: "adapter" parameters {{ key: "base" value {{ string_value: "{base}" }} }}'
    repository.write(name, {}, config)


def ask(name: str, **inputs: object) -> InferRequest:
    """Return a request for three tokens."""
    texts = {"text_input": "abc", "sampling_parameters": json.dumps({"max_tokens": 3}), **inputs}
    tensors = {key: Tensor(key, "BYTES", np.array([str(text).encode()], object)) for key, text in texts.items()}
    exclude = Tensor("exclude_input_in_output", "BOOL", np.array([True]))
    return InferRequest(name, {**tensors, "exclude_input_in_output": exclude}, requested_outputs=("text_output",))


async def text(plane, name: str, lora: str = "", **inputs: object) -> str:
    """Return the text of an answer: of a model that repeats its prompt, or the name of its adapter."""
    if lora:
        inputs = {"sampling_parameters": json.dumps({"max_tokens": 3, "lora_name": lora}), **inputs}
    response = await last(plane, ask(name, **inputs))
    return response.outputs[0].array.ravel()[0].decode()


async def last(plane, request: InferRequest):
    """Return the one response with outputs, or raise its error."""
    received = [response async for response in responses(plane, request)]
    for response in received:
        if response.error is not None:
            raise response.error
    return next(response for response in received if response.outputs)
