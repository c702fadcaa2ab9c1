"""Configurations, saved models and requests that tests of the PyTorch backend share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tests.runtime.backends.requests import named

from argosy_runtime.messages import InferRequest


def config(inputs: list[str], outputs: list[str], extra: str = "", kind: str = "TYPE_FP32") -> str:
    sides = [("input", inputs), ("output", outputs)]
    tensors = [f'{side} {{ name: "{name}" data_type: {kind} dims: [ -1 ] }}' for side, names in sides for name in names]
    return f'name: "m" backend: "pytorch" max_batch_size: 8 {extra} ' + " ".join(tensors)


def request(**arrays: Any) -> InferRequest:
    return named({name.replace("_of_", ""): value for name, value in arrays.items()})


def torchscript(module: torch.nn.Module) -> Callable[[Path], None]:
    return lambda folder: torch.jit.save(torch.jit.script(module), folder / "model.pt")  # type: ignore[no-untyped-call]


def results(response: Any) -> dict[str, Any]:
    assert response.error is None, response.error
    return {output.name: output.array.tolist() for output in response.outputs}
