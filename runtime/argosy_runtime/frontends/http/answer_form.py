"""Answers that are like others before them: all but id and tensors is there already."""

from collections.abc import Sequence
from typing import Final

from argosy_runtime.messages import InferResponse, ResponsePlan
from argosy_runtime.protocol.http import response as http_response
from argosy_runtime.protocol.json.text import dumps
from argosy_runtime.protocol.model_view import ModelView
from argosy_runtime.protocol.output_encoding import OutputEncoding
from argosy_runtime.tensors import Data, Tensor, TensorSpec

from .wire.exchange import Exchange

_REMEMBERED: Final = 64


class AnswerForm:
    """What answers have in common whose tensors are always so many bytes, and none of them part of the JSON."""

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

    def suits(self, response: InferResponse) -> bool:
        """Return whether a response comes from the same version of the same model."""
        return self._model_name == response.model_name and self._model_version == response.model_version

    def has(self, outputs: list[Tensor]) -> bool:
        """Return whether these outputs are like its own."""
        if len(outputs) != len(self._outputs):
            return False
        for mine, other in zip(self._outputs, outputs, strict=True):
            if mine.name != other.name or mine.datatype != other.datatype or mine.shape != other.shape:
                return False
        return True

    @property
    def is_none(self) -> bool:
        """Whether such answers have no one form."""
        return not self._json

    def send(self, exchange: Exchange, response_id: str, raw: Sequence[Data]) -> bool:
        """Answer with these tensors; False where they are not as many bytes as they should be."""
        size = 0
        for data in raw:
            size += len(data)
        if size != self._size:
            return False
        json = b'{"id":%b,%b' % (dumps(response_id), self._json[1:]) if response_id else self._json
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: %d\r\n"
            b"Content-Length: %d\r\n%b\r\n%b" % (len(json), len(json) + size, exchange.framing(), json)
        )
        pieces: list[Data] = [head]
        pieces.extend(raw)
        exchange.send(pieces, size)
        return True


class AnswerForms:
    """The forms of the answers to requests that are alike: one for each plan, and that of the last one without."""

    __slots__ = ("_encoding", "_forms", "_last")

    def __init__(self, encoding: OutputEncoding) -> None:
        self._encoding = encoding
        self._forms: dict[ResponsePlan, AnswerForm] = {}
        self._last: AnswerForm | None = None

    def send(self, exchange: Exchange, response: InferResponse) -> bool:
        """Send a response in its form; False where it has none."""
        if response.error is not None:
            return False
        plan, raw = response.plan, response.raw
        if plan is not None and raw is not None and response.parameters is plan.parameters:
            form = self._of_plan(plan, response)
            return not form.is_none and form.send(exchange, response.id, raw)
        # Equal parameters need not be written alike: 1 and true.
        if response.parameters:
            return False
        form = self._like_last(response)
        return not form.is_none and form.send(exchange, response.id, [tensor.data for tensor in response.outputs])

    def _of_plan(self, plan: ResponsePlan, response: InferResponse) -> AnswerForm:
        form = self._forms.get(plan)
        if form is None or not form.suits(response):
            if len(self._forms) >= _REMEMBERED:
                self._forms.clear()
            form = self._forms[plan] = AnswerForm(response, self._encoding)
        return form

    def _like_last(self, response: InferResponse) -> AnswerForm:
        form = self._last
        if form is None or not form.suits(response) or not form.has(response.outputs):
            form = self._last = AnswerForm(response, self._encoding)
        return form


def _is_raw(output: TensorSpec, encoding: OutputEncoding) -> bool:
    return output.size >= 0 and output.name not in encoding.classes and encoding.is_binary(output.name)


def _no_view() -> ModelView:
    raise AssertionError("only classes need to know the model")
