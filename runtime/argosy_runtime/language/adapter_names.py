"""The adapter that a request names, read as language models read it: an input, or one of the sampling parameters."""

from typing import Any

import msgspec
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig.parameters.adapters import LORA_NAME, SAMPLING
from argosy_runtime.tensors import Tensor, string_array

from . import inputs, sampling


def names_adapters(config: ModelConfig) -> bool:
    """Return whether requests to a model may name adapters."""
    return has_name_input(config) or any(tensor.name == SAMPLING for tensor in config.input)


def has_name_input(config: ModelConfig) -> bool:
    """Return whether requests to a model name adapters by an input of its own."""
    return any(tensor.name == LORA_NAME for tensor in config.input)


def named_adapter(request: InferRequest) -> str:
    """Return the adapter that a request names, "" for none, or where the model has to say what is wrong with it."""
    try:
        name = _name(request)
    except ServingError:
        return ""
    return name if isinstance(name, str) else ""


def set_adapter(request: InferRequest, adapter: str, *, by_input: bool, alias: str = "") -> None:
    """Have a request name an adapter. One that cannot be read is left as it is: the model refuses it.

    Raises ServingError for a request that names another one than the adapter, be it by its name or by `alias`.
    """
    try:
        name = _name(request)
        value = adapter.encode() if by_input else msgspec.json.encode({**_parameters(request), LORA_NAME: adapter})
    except ServingError:
        return
    if name not in (None, adapter, alias or adapter):
        raise invalid(f"{request.log_prefix}'{LORA_NAME}' names another adapter than the model '{alias or adapter}'")
    tensor = Tensor(LORA_NAME if by_input else SAMPLING, "BYTES", string_array([value], (1,)))
    request.inputs = {**request.inputs, tensor.name: tensor}


def _name(request: InferRequest) -> object:
    """Return what a request gives as the name of an adapter, None for nothing. Raises ServingError."""
    name = inputs.text(request, LORA_NAME)
    return _parameters(request).get(LORA_NAME) if name is None else name


def _parameters(request: InferRequest) -> dict[str, Any]:
    """Return the sampling parameters of a request; without that input they are parameters of the request itself."""
    text = inputs.data(request, SAMPLING)
    if text is None:
        return {name: request.parameters[name] for name in sampling.NAMES if name in request.parameters}
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (ValueError, RecursionError) as error:
        raise invalid(f"input '{SAMPLING}' cannot be read: {error}") from None
