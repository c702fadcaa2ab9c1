"""Requests and parameters of models, for tests of every backend."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy_runtime.messages import InferRequest, Tensor


def named(arrays: Mapping[str, Any]) -> InferRequest:
    """Return a request of FP32 tensors."""
    tensors = {name: Tensor(name, "FP32", np.array(value, np.float32)) for name, value in arrays.items()}
    return InferRequest("m", tensors)


def parameter(key: str, value: str) -> str:
    """Return a parameter of a configuration."""
    return f' parameters {{ key: "{key}" value {{ string_value: "{value}" }} }} '
