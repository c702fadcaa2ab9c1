"""Inference requests that are like others before them: known by their bytes, their tensors passed through untouched.

A request's JSON without its id is the key under which is kept what the ordinary way has found out about it once. What
the ordinary way would answer, byte for byte, is answered here; whatever is unusual takes the ordinary way.
"""

import re
from typing import Final

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.messages import InferRequest, InferResponse, RequestPlan
from argosy_runtime.protocol.output_encoding import OutputEncoding
from argosy_runtime.tensors import Data

from .answer_form import AnswerForms
from .infer import Infer, submit
from .wire.exchange import Exchange

_REMEMBERED: Final = 1024
_LONGEST_REMEMBERED: Final = 4096
# Below this many bytes a copy is cheaper than a view.
_COPY_BELOW: Final = 4096
_ID: Final = b'{"id":"'
_SPACED_ID: Final = b'{"id": "'
_ANOTHER_ID: Final = re.compile(rb'"id"\s*:')


class InferPlan:
    """What requests alike have in common, and the forms of their answers. `size` is their tensors' in bytes."""

    __slots__ = ("encoding", "forms", "request", "size")

    def __init__(self, request: RequestPlan, encoding: OutputEncoding) -> None:
        self.request = request
        self.encoding = encoding
        self.size = sum(spec.size for spec in request.inputs)
        self.forms = AnswerForms(encoding)

    def cut(self, data: Data, begin: int) -> list[Data]:
        """Return the tensors that stand in `data` from `begin` on."""
        if self.size >= _COPY_BELOW:
            data = memoryview(data)
        raw: list[Data] = []
        for spec in self.request.inputs:
            end = begin + spec.size
            raw.append(data[begin:end])
            begin = end
        return raw


class InferPlans:
    """The plans of all models, by the bytes of their requests; the oldest is forgotten where they are many."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, InferPlan] = {}

    def find(self, key: bytes) -> InferPlan | None:
        """Return the plan under a key."""
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
        """Decode a request that is the first of its like. Return its plan; None where there is none and the request has
        been begun.
        """
        ordinary = self._ordinary
        try:
            request, encoding = ordinary.decode(exchange.body(exchange.size))
        except ServingError as error:
            ordinary.refuse(exchange, error)
            return None
        # Another id, or one written otherwise, might stand in what is compared.
        sure = b"\\" not in text and _ANOTHER_ID.search(text) is None
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
        exchange = self._exchange
        if exchange.answered:
            return
        try:
            sent = self._plan.forms.send(exchange, response)
        except Exception as error:
            exchange.fail(error)
            return
        if not sent:
            self._ordinary.answer(exchange, response, self._plan.encoding)


def _id_start(text: bytes) -> int:
    """Return where an id begins that is the first member; 0 where none is."""
    if text.startswith(_ID):
        return len(_ID)
    return len(_SPACED_ID) if text.startswith(_SPACED_ID) else 0


def _plain_id(raw: bytes) -> str | None:
    """Return an id that JSON writes as it is; None where it is not."""
    if b"\\" in raw:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _all_raw(request: InferRequest, size: int) -> bool:
    """Return whether all of a request's inputs, and nothing else, stand in `size` bytes behind its JSON."""
    total = 0
    for tensor in request.inputs.values():
        if tensor.datatype == "BYTES":
            return False
        total += len(tensor.data)
    return total == size


def may_be_known(json_length: int) -> bool:
    """Return whether a request with so much JSON can be remembered."""
    return 0 < json_length <= _LONGEST_REMEMBERED
