"""Finding a tensor, or its part of the configuration, by name."""

from typing import Any

from .inference import InferenceRequest, InferenceResponse
from .tensor import Tensor


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Tensor | None:
    """The request's input of that name, None where it has none."""
    return next((found for found in inference_request.inputs() if found.name() == name), None)


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Tensor | None:
    """The response's output of that name, None where it has none."""
    return next((found for found in inference_response.output_tensors() if found.name() == name), None)


def get_input_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The input's part of a configuration in JSON form, None where it has none."""
    return next((found for found in model_config.get("input", ()) if found["name"] == name), None)


def get_output_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The output's part of a configuration in JSON form, None where it has none."""
    return next((found for found in model_config.get("output", ()) if found["name"] == name), None)


def using_decoupled_model_transaction_policy(model_config: dict[str, Any]) -> bool:
    """Whether the model may send any number of responses to a request."""
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))
