"""Inference requests that are like others before them: known by their bytes, their tensors passed through untouched.

A request's JSON without its id is the key under which is kept what the ordinary way has found out about it once. What
the ordinary way would answer, byte for byte, is answered here; whatever is unusual takes the ordinary way.
"""

from collections.abc import Sequence
from typing import Final

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.messages import InferRequest, InferResponse, RequestPlan, ResponsePlan
from argosy_runtime.protocol import http_response
from argosy_runtime.protocol.json_text import dumps
from argosy_runtime.protocol.model_view import ModelView
from argosy_runtime.protocol.output_encoding import OutputEncoding
from argosy_runtime.tensors import Data

from .infer import Infer, submit
from .wire.exchange import Exchange

_REMEMBERED: Final = 1024
_LONGEST_REMEMBERED: Final = 4096
_ANSWERS: Final = 64
# Below this many bytes a copy is cheaper than a view.
_COPY_BELOW: Final = 4096
_QUOTE: Final = 34
_ID: Final = b'{"id":"'
_SPACED_ID: Final = b'{"id": "'


class AnswerForm:
    """All of an answer but id and tensors, where they are always so many bytes and no part of the JSON."""

    __slots__ = ("_json", "_model_name", "_model_version", "_size")

    def __init__(self, response: InferResponse, encoding: OutputEncoding) -> None:
        self._model_name = response.model_name
        self._model_version = response.model_version
        self._json = b""
        self._size = 0
        for output in response.outputs:
            size = len(output.data)
            if output.datatype == "BYTES" or output.name in encoding.classes or not encoding.is_binary(output.name):
                self._size = 0
                return
            self._size += size
        if self._size:
            named = InferResponse(
                response.model_name, response.model_version, "", response.outputs, response.parameters
            )
            self._json = bytes(http_response.encode(named, encoding, _no_view).chunks[0])

    def suits(self, response: InferResponse) -> bool:
        """Whether it was made of a response of this model's version."""
        return self._model_name == response.model_name and self._model_version == response.model_version

    def send(self, exchange: Exchange, response_id: str, raw: Sequence[Data]) -> bool:
        """Answer with these tensors; False where it cannot be done in this form."""
        json = self._json
        size = 0
        for data in raw:
            size += len(data)
        if not json or size != self._size:
            return False
        if response_id:
            json = b'{"id":%b,%b' % (dumps(response_id), json[1:])
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: %d\r\n"
            b"Content-Length: %d\r\n%b\r\n%b" % (len(json), len(json) + size, exchange.framing(), json)
        )
        pieces: list[Data] = [head]
        pieces.extend(raw)
        exchange.send(pieces, size)
        return True


def _no_view() -> ModelView:
    raise AssertionError("only classes need to know the model")


class InferPlan:
    """What requests alike have in common, and the forms of their answers. `size` is their tensors' in bytes."""

    __slots__ = ("_forms", "encoding", "request", "size")

    def __init__(self, request: RequestPlan, encoding: OutputEncoding) -> None:
        self.request = request
        self.encoding = encoding
        self.size = sum(spec.size for spec in request.inputs)
        self._forms: dict[ResponsePlan, AnswerForm] = {}

    def cut(self, data: Data, begin: int) -> list[Data]:
        """The tensors that stand in `data` from `begin` on."""
        if self.size >= _COPY_BELOW:
            data = memoryview(data)
        raw: list[Data] = []
        for spec in self.request.inputs:
            end = begin + spec.size
            raw.append(data[begin:end])
            begin = end
        return raw

    def form(self, plan: ResponsePlan, response: InferResponse) -> AnswerForm:
        """The form of a response made of `plan`."""
        form = self._forms.get(plan)
        if form is None or not form.suits(response):
            if len(self._forms) >= _ANSWERS:
                self._forms.clear()
            form = self._forms[plan] = AnswerForm(response, self.encoding)
        return form


class InferPlans:
    """The plans of all models, by the bytes of their requests; the oldest is forgotten where they are many."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, InferPlan] = {}

    def find(self, key: bytes) -> InferPlan | None:
        """The plan under a key."""
        return self._known.get(key)

    def remember(self, key: bytes, plan: InferPlan) -> None:
        """Keep a plan under its key."""
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = plan


class PlannedInfer:
    """Answers the requests of one head, whose JSON is `json_length` bytes long; `ordinary` those that are unlike."""

    __slots__ = ("_json_length", "_ordinary", "_plane", "_plans", "_route")

    def __init__(self, plane: DataPlane, plans: InferPlans, ordinary: Infer, route: bytes, json_length: int) -> None:
        self._plane = plane
        self._plans = plans
        self._ordinary = ordinary
        self._route = route
        self._json_length = json_length

    def begin(self, exchange: Exchange) -> None:
        """See `Handler`."""
        data, split = exchange.data, exchange.begin + self._json_length
        text = data[exchange.begin : split] if isinstance(data, bytes) else bytes(data[exchange.begin : split])
        request_id: str | None = ""
        start = _id_start(text)
        if start:
            end = text.find(b'"', start)
            request_id = _plain_id(text[start:end]) if end > start else "" if end == start else None
            text = text[end:]
        if request_id is None:
            self._ordinary.begin(exchange)
            return
        key = self._route + text
        plan = self._plans.find(key)
        if plan is None:
            plan = self._learn(exchange, key, text, request_id)
            if plan is None:
                return
        if exchange.size - self._json_length != plan.size:
            self._ordinary.begin(exchange)
            return
        request = plan.request.request(request_id, plan.cut(data, split))
        submit(self._plane, exchange, request, _PlannedAnswer(self._ordinary, plan, exchange).deliver)

    def _learn(self, exchange: Exchange, key: bytes, text: bytes, request_id: str) -> InferPlan | None:
        """The plan of a request that is the first of its like; None where there is none and it has been begun."""
        ordinary = self._ordinary
        try:
            request, encoding = ordinary.decode(exchange.body(exchange.size))
        except ServingError as error:
            ordinary.refuse(exchange, error)
            return None
        # Another id, or a name written otherwise, might stand in what is compared.
        sure = b"\\" not in text and b'"id"' not in text
        if not sure or request.id != request_id or not _all_raw(request, exchange.size - self._json_length):
            ordinary.submit(exchange, request, encoding)
            return None
        plan = InferPlan(RequestPlan(request), encoding)
        self._plans.remember(key, plan)
        return plan


class _PlannedAnswer:
    """Takes the one response to a request of a plan."""

    __slots__ = ("_exchange", "_ordinary", "_plan")

    def __init__(self, ordinary: Infer, plan: InferPlan, exchange: Exchange) -> None:
        self._ordinary = ordinary
        self._plan = plan
        self._exchange = exchange

    def deliver(self, response: InferResponse) -> None:
        """See `messages.Deliver`."""
        exchange, like, raw = self._exchange, response.plan, response.raw
        if exchange.answered:
            return
        sent = False
        if like is not None and raw is not None and response.error is None and response.parameters == like.parameters:
            sent = self._plan.form(like, response).send(exchange, response.id, raw)
        if not sent:
            self._ordinary.answer(exchange, response, self._plan.encoding)


def _id_start(text: bytes) -> int:
    """Where an id begins that is the first member; 0 where none is."""
    if text.startswith(_ID):
        return len(_ID)
    return len(_SPACED_ID) if text.startswith(_SPACED_ID) else 0


def _plain_id(raw: bytes) -> str | None:
    """An id that JSON writes as it is; None where it is not."""
    if b"\\" in raw:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _all_raw(request: InferRequest, size: int) -> bool:
    """Whether all of a request's inputs, and nothing else, stand in `size` bytes behind its JSON."""
    total = 0
    for tensor in request.inputs.values():
        if tensor.datatype == "BYTES":
            return False
        total += len(tensor.data)
    return total == size


def may_be_known(json_length: int) -> bool:
    """Whether a request with so much JSON can be remembered."""
    return 0 < json_length <= _LONGEST_REMEMBERED
