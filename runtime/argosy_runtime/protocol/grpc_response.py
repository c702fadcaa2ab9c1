"""An `InferResponse` as ModelInferResponse and ModelStreamInferResponse; outputs are always raw."""

from collections.abc import Callable, Mapping

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.messages import InferRequest, InferResponse

from . import grpc_parameters
from .classification import classify
from .model_view import ModelView
from .tensors import to_bytes


def encode(
    response: InferResponse, classes: Mapping[str, int], model: Callable[[], ModelView]
) -> pb.ModelInferResponse:
    """Encode a response that is no error. `model` is asked only for classification."""
    message = pb.ModelInferResponse()
    _fill(message, response, classes, model)
    return message


def _fill(
    message: pb.ModelInferResponse,
    response: InferResponse,
    classes: Mapping[str, int],
    model: Callable[[], ModelView],
) -> None:
    message.id, message.model_name = response.id, response.model_name
    message.model_version = response.model_version
    if response.parameters:
        grpc_parameters.put(response.parameters, message.parameters)
    for tensor in response.outputs:
        count = classes.get(tensor.name)
        shown = tensor if count is None else classify(tensor, count, model())
        message.outputs.add(name=shown.name, datatype=shown.datatype, shape=shown.array.shape)
        message.raw_output_contents.append(to_bytes(shown))


def encode_stream(
    request: InferRequest,
    response: InferResponse,
    classes: Mapping[str, int],
    model: Callable[[], ModelView],
) -> pb.ModelStreamInferResponse:
    """Encode one response of a stream, its error if it is one, with its final flag."""
    message = pb.ModelStreamInferResponse()
    if response.is_empty or response.error is not None:
        inner = message.infer_response
        inner.id, inner.model_name = request.id, request.model_name
        inner.model_version = request.model_version
        if response.error is not None:
            message.error_message = response.error.message
    else:
        _fill(message.infer_response, response, classes, model)
    message.infer_response.parameters[grpc_parameters.FINAL_RESPONSE].bool_param = response.final
    return message


def encode_refusal(request_id: str, message: str) -> pb.ModelStreamInferResponse:
    """What a stream answers to a request that never began; its id tells the client which."""
    refusal = pb.ModelStreamInferResponse(error_message=message)
    refusal.infer_response.id = request_id
    return refusal
