"""Responses that differ from earlier ones in nothing but id and tensor data: the rest of their JSON is cached."""

from collections.abc import Sequence
from typing import Final

from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferResponse, ResponseTemplate
from argosy_runtime.protocol.http import response as http_response
from argosy_runtime.protocol.http.response import OutputEncoding
from argosy_runtime.protocol.json.text import dumps
from argosy_runtime.protocol.model_view import ModelView
from argosy_runtime.tensors import Data, Tensor, TensorSpec

from .wire.request_context import RequestContext

_CAPACITY: Final = 64


class HttpResponseTemplate:
    """The JSON of responses whose outputs have these specs, less their id.

    It is empty where there is no such JSON: where an output is part of the JSON, or of no fixed size.
    """

    __slots__ = ("_json", "_model_name", "_model_version", "_outputs", "_size")

    def __init__(self, response: InferResponse, encoding: OutputEncoding) -> None:
        self._model_name = response.model_name
        self._model_version = response.model_version
        self._outputs: list[TensorSpec] = [output.spec() for output in response.outputs]
        self._size = 0
        self._json = b""
        if all(_is_raw(output, encoding) for output in self._outputs):
            self._size = sum(output.size for output in self._outputs)
        if self._size:
            nameless = InferResponse(self._model_name, self._model_version, "", response.outputs, response.parameters)
            self._json = bytes(http_response.encode(nameless, encoding, _no_view).chunks[0])

    def is_of_model(self, response: InferResponse) -> bool:
        """Return whether a response comes from the same version of the same model."""
        return self._model_name == response.model_name and self._model_version == response.model_version

    def matches(self, outputs: list[Tensor]) -> bool:
        """Return whether these outputs have the names, types and shapes of the template's."""
        if len(outputs) != len(self._outputs):
            return False
        for spec, output in zip(self._outputs, outputs, strict=True):
            if spec.name != output.name or spec.datatype != output.datatype or spec.shape != output.shape:
                return False
        return True

    @property
    def is_empty(self) -> bool:
        """Whether such responses have to be encoded one by one."""
        return not self._json

    def send(self, context: RequestContext, response_id: str, raw: Sequence[Data]) -> bool:
        """Send a response with these tensors. Return False, and send nothing, where their total size is another."""
        size = 0
        for data in raw:
            size += len(data)
        if size != self._size:
            return False
        json = b'{"id":%b,%b' % (dumps(response_id), self._json[1:]) if response_id else self._json
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: %d\r\n"
            b"Content-Length: %d\r\n%b\r\n%b" % (len(json), len(json) + size, context.framing(), json)
        )
        pieces: list[Data] = [head]
        pieces.extend(raw)
        context.send(pieces, size)
        return True


class HttpResponseTemplates:
    """The templates of the responses to requests of one template: by the model's template, and of the last response
    that came without one.
    """

    __slots__ = ("_encoding", "_last", "_templates")

    def __init__(self, encoding: OutputEncoding) -> None:
        self._encoding = encoding
        self._templates = FifoCache[ResponseTemplate, HttpResponseTemplate](_CAPACITY)
        self._last: HttpResponseTemplate | None = None

    def send(self, context: RequestContext, response: InferResponse) -> bool:
        """Send a response from its template. Return False, and send nothing, where it has none."""
        if response.error is not None:
            return False
        of_model, raw = response.template, response.raw
        if of_model is not None and raw is not None and response.parameters is of_model.parameters:
            template = self._of_template(of_model, response)
            return not template.is_empty and template.send(context, response.id, raw)
        # Equal parameters need not be written alike: 1 and true.
        if response.parameters:
            return False
        template = self._like_last(response)
        return not template.is_empty and template.send(
            context, response.id, [output.data for output in response.outputs]
        )

    def _of_template(self, of_model: ResponseTemplate, response: InferResponse) -> HttpResponseTemplate:
        template = self._templates.get(of_model)
        if template is None or not template.is_of_model(response):
            template = HttpResponseTemplate(response, self._encoding)
            self._templates.put(of_model, template)
        return template

    def _like_last(self, response: InferResponse) -> HttpResponseTemplate:
        template = self._last
        if template is None or not template.is_of_model(response) or not template.matches(response.outputs):
            template = self._last = HttpResponseTemplate(response, self._encoding)
        return template


def _is_raw(output: TensorSpec, encoding: OutputEncoding) -> bool:
    return output.size >= 0 and output.name not in encoding.classes and encoding.is_binary(output.name)


def _no_view() -> ModelView:
    raise AssertionError("only classes need to know the model")
