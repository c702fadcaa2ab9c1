"""Configurations, saved models and requests that tests of the PyTorch backend share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from argosy_runtime.messages import InferRequest, Tensor


def config(inputs: list[str], outputs: list[str], extra: str = "", kind: str = "TYPE_FP32") -> str:
    sides = [("input", inputs), ("output", outputs)]
    tensors = [f'{side} {{ name: "{name}" data_type: {kind} dims: [ -1 ] }}' for side, names in sides for name in names]
    return f'name: "m" backend: "pytorch" max_batch_size: 8 {extra} ' + " ".join(tensors)


def parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }} '


def request(**arrays: Any) -> InferRequest:
    made = {name.replace("_of_", ""): np.array(value, np.float32) for name, value in arrays.items()}
    return InferRequest("m", {name: Tensor(name, "FP32", array) for name, array in made.items()})


def named(arrays: dict[str, Any]) -> InferRequest:
    return InferRequest(
        "m", {name: Tensor(name, "FP32", np.array(value, np.float32)) for name, value in arrays.items()}
    )


def torchscript(module: torch.nn.Module) -> Callable[[Path], None]:
    return lambda folder: torch.jit.save(torch.jit.script(module), folder / "model.pt")  # type: ignore[no-untyped-call]


def results(response: Any) -> dict[str, Any]:
    assert response.error is None, response.error
    return {output.name: output.array.tolist() for output in response.outputs}
