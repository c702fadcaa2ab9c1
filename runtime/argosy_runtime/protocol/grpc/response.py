"""An `InferResponse` as ModelInferResponse and ModelStreamInferResponse; outputs are always raw."""

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.protocol.classification import classify
from argosy_runtime.protocol.model_view import ModelView
from argosy_runtime.tensors import Data

from . import parameters as grpc_parameters
from . import wire as grpc_wire

_CAPACITY: Final = 1024
_LARGEST_HEAD: Final = 4096


def encode(
    response: InferResponse, classes: Mapping[str, int], model: Callable[[], ModelView]
) -> pb.ModelInferResponse:
    """Encode a response that is no error. `model` is called only for classification."""
    message = pb.ModelInferResponse(id=response.id)
    _fill(message, response, classes, model)
    return message


def _fill(
    message: pb.ModelInferResponse,
    response: InferResponse,
    classes: Mapping[str, int],
    model: Callable[[], ModelView],
) -> None:
    message.model_name, message.model_version = response.model_name, response.model_version
    if response.parameters:
        grpc_parameters.put(response.parameters, message.parameters)
    for tensor in response.outputs:
        count = classes.get(tensor.name)
        shown = tensor if count is None else classify(tensor, count, model())
        message.outputs.add(name=shown.name, datatype=shown.datatype, shape=shown.shape)
        message.raw_output_contents.append(bytes(shown.data))


def encode_stream(
    request: InferRequest,
    response: InferResponse,
    classes: Mapping[str, int],
    model: Callable[[], ModelView],
) -> pb.ModelStreamInferResponse:
    """Encode one response of a stream, its error if it is one, with its final flag."""
    message = pb.ModelStreamInferResponse()
    inner = message.infer_response
    if response.is_empty or response.error is not None:
        inner.id, inner.model_name = request.id, request.model_name
        inner.model_version = request.model_version
        if response.error is not None:
            message.error_message = response.error.message
    else:
        inner.id = response.id
        _fill(inner, response, classes, model)
    inner.parameters[grpc_parameters.FINAL_RESPONSE].bool_param = response.final
    return message


def encode_refusal(request_id: str, message: str) -> pb.ModelStreamInferResponse:
    """Return a stream's answer to a request that was refused, with the request's id."""
    refusal = pb.ModelStreamInferResponse(error_message=message)
    refusal.infer_response.id = request_id
    return refusal


class ResponseEncoder:
    """Encodes responses as the parts of their messages. What equal responses have in common is encoded once."""

    def __init__(self) -> None:
        self._heads = FifoCache[Hashable, bytes](_CAPACITY)

    def infer(self, response: InferResponse, classes: Mapping[str, int], model: Callable[[], ModelView]) -> list[Data]:
        """Encode a response as ModelInferResponse."""
        if classes or (response.template is None and response.parameters):
            return [encode(response, classes, model).SerializeToString()]
        return grpc_wire.response_parts(self._head(response), response.id, _raw(response))

    def stream(
        self,
        request: InferRequest,
        response: InferResponse,
        classes: Mapping[str, int],
        model: Callable[[], ModelView],
    ) -> list[Data]:
        """Encode a response as ModelStreamInferResponse."""
        ordinary = response.template is not None or not response.parameters
        if classes or response.is_empty or response.error is not None or not ordinary:
            return [encode_stream(request, response, classes, model).SerializeToString()]
        head = self._head(response) + _FINAL[response.final]
        return grpc_wire.stream_parts(grpc_wire.response_parts(head, response.id, _raw(response)))

    def _head(self, response: InferResponse) -> bytes:
        """Return the encoded response without its id and its data."""
        like: Hashable = response.template
        if like is None:
            like = tuple([(tensor.name, tensor.datatype, tensor.shape) for tensor in response.outputs])
        key = (like, response.model_name, response.model_version)
        return self._heads.get(key) or self._encode_head(key, response)

    def _encode_head(self, key: Hashable, response: InferResponse) -> bytes:
        message = pb.ModelInferResponse(model_name=response.model_name, model_version=response.model_version)
        grpc_parameters.put(response.parameters, message.parameters)
        for tensor in response.outputs if response.template is None else response.template.outputs:
            message.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        head: bytes = message.SerializeToString()
        if len(head) <= _LARGEST_HEAD:
            self._heads.put(key, head)
        return head


def _raw(response: InferResponse) -> list[Data]:
    if response.template is not None and response.raw is not None:
        return list(response.raw)
    return [tensor.data for tensor in response.outputs]


def _final(final: bool) -> bytes:
    message = pb.ModelInferResponse()
    message.parameters[grpc_parameters.FINAL_RESPONSE].bool_param = final
    encoded: bytes = message.SerializeToString()
    return encoded


_FINAL: Final = {final: _final(final) for final in (False, True)}
