"""Requests to language models, for tests."""

from typing import Any

import numpy as np

from argosy_runtime.language.tensors import INPUTS, PLAIN_INPUTS
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.modelconfig.datatypes import numpy_dtype
from argosy_runtime.tensors import string_array


def generation(
    _outputs: tuple[str, ...] = (), _parameters: dict[str, Any] | None = None, **inputs: Any
) -> InferRequest:
    """Return a request whose inputs have these values."""
    tensors = {name: tensor(name, value) for name, value in inputs.items()}
    return InferRequest("llm", tensors, id="r", requested_outputs=_outputs, parameters=_parameters)


def tensor(name: str, value: Any) -> Tensor:
    """Return an input of its declared datatype."""
    datatype, _ = {**INPUTS, **PLAIN_INPUTS}[name]
    values = value if isinstance(value, list) else [value]
    if datatype == "BYTES":
        texts = [item if isinstance(item, bytes) else item.encode() for item in values]
        return Tensor(name, datatype, string_array(texts, (len(texts),)))
    return Tensor(name, datatype, np.array(values, numpy_dtype(datatype)))
