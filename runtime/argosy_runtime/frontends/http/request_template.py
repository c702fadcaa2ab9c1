"""Inference requests that differ from earlier ones in nothing but id, sequence and tensor data, matched by their JSON.

The JSON of a request without id and sequence is the key of a template, which is made once by the ordinary decoder. From
then on only these and the tensors are cut out of such requests, and the tensors are not decoded. Every response is,
byte for byte, what the ordinary handler would send, which takes all requests that are unusual.
"""

import re
from typing import Final, TypeAlias

from argosy_runtime.errors import ServingError
from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.frontends.forwarding import HeaderForwarding
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.messages import InferRequest, InferResponse, RequestTemplate
from argosy_runtime.modelconfig import ConfigError
from argosy_runtime.protocol.http.response import OutputEncoding
from argosy_runtime.tensors import Data

from .infer import HEADER_LENGTH, InferHandler, submit
from .response_template import HttpResponseTemplates
from .wire.application import Handler
from .wire.heads import Head
from .wire.request_context import RequestContext

_CAPACITY: Final = 1024
_LONGEST_KEY: Final = 4096
_MOST_DIGITS: Final = 18
# Below this many bytes a copy is cheaper than a view.
_COPY_BELOW: Final = 4096
_ID: Final = b'{"id":"'
_SPACED_ID: Final = b'{"id": "'
_ANOTHER_ID: Final = re.compile(rb'"id"\s*:')
_SEQUENCE_ID: Final = b'"sequence_id"'
# As the client libraries write a sequence with a number.
_SEQUENCE: Final = re.compile(
    rb'"sequence_id"\s*:\s*([1-9][0-9]{0,17})\s*,\s*"sequence_start"\s*:\s*(true|false)\s*,'
    rb'\s*"sequence_end"\s*:\s*(true|false)(?=\s*[,}])'
)
_Sequence: TypeAlias = tuple[int, bool, bool]


class HttpRequestTemplate:
    """What equal requests have in common, with the templates of their responses. `size`: of their tensors, in bytes."""

    __slots__ = ("encoding", "locations", "request", "responses", "size")

    def __init__(self, request: RequestTemplate, encoding: OutputEncoding) -> None:
        self.request = request
        self.encoding = encoding
        self.locations = encoding.locations
        located = self.locations is not None and self.locations.inputs
        self.size = 0 if located else sum(spec.size for spec in request.inputs)
        self.responses = HttpResponseTemplates(encoding)

    def cut(self, data: Data, begin: int) -> list[Data]:
        """Return the tensors that `data` holds from `begin` on; none where they lie in shared memory."""
        if not self.size:
            return [b""] * len(self.request.inputs)
        if self.size >= _COPY_BELOW:
            data = memoryview(data)
        raw: list[Data] = []
        for spec in self.request.inputs:
            end = begin + spec.size
            raw.append(data[begin:end])
            begin = end
        return raw


Templates: TypeAlias = FifoCache[bytes, HttpRequestTemplate]


class TemplateHandler:
    """Handles the requests of one head, whose JSON is `json_length` bytes long. `ordinary` handles those without a
    template.
    """

    __slots__ = ("_json_length", "_ordinary", "_plane", "_route", "_templates")

    def __init__(
        self, plane: DataPlane, templates: Templates, ordinary: InferHandler, route: bytes, json_length: int
    ) -> None:
        self._plane = plane
        self._templates = templates
        self._ordinary = ordinary
        self._route = route
        self._json_length = json_length

    def begin(self, context: RequestContext) -> None:
        """Answer from the request's template if it has one, or else as the ordinary handler does."""
        data, split = context.data, context.begin + self._json_length
        text = data[context.begin : split] if isinstance(data, bytes) else bytes(data[context.begin : split])
        request_id: str | None = ""
        start = _id_start(text)
        if start:
            end = text.find(b'"', start)
            request_id = _plain_id(text[start:end]) if end > start else "" if end == start else None
            text = text[end:]
        if request_id is None:
            self._ordinary.begin(context)
            return
        cut = _SEQUENCE.search(text) if _SEQUENCE_ID in text else None
        sequence: _Sequence | None = None
        if cut is not None:
            sequence = (int(cut[1]), cut[2] == b"true", cut[3] == b"true")
            text = text[: cut.start()] + _SEQUENCE_ID + text[cut.end() :]
        key = self._route + text
        template = self._templates.get(key)
        if template is None:
            template = self._add_template(context, key, text, request_id, sequence)
            if template is None:
                return
        if context.size - self._json_length != template.size:
            self._ordinary.begin(context)
            return
        request = template.request.request(request_id, template.cut(data, split))
        if sequence is not None:
            request.join(sequence[0], sequence[1], sequence[2])
        deliver = _TemplateAnswer(self._ordinary, template, context).deliver
        submit(self._plane, context, request, deliver, template.locations)

    def _add_template(
        self, context: RequestContext, key: bytes, text: bytes, request_id: str, sequence: _Sequence | None
    ) -> HttpRequestTemplate | None:
        """Decode the first request of its kind and return its template, or begin the request where it has none."""
        ordinary = self._ordinary
        try:
            request, encoding = ordinary.decode(context.body(context.size))
        except ServingError as error:
            ordinary.refuse(context, error)
            return None
        # The key might contain another id or sequence, or one that is written otherwise.
        sure = b"\\" not in text and _ANOTHER_ID.search(text) is None and _is_only_sequence(text, request, sequence)
        if not sure or request.id != request_id or not _all_raw(request, encoding, context.size - self._json_length):
            ordinary.submit(context, request, encoding)
            return None
        of_request = RequestTemplate(request)
        if sequence is not None:
            of_request.leave_sequence()
        template = HttpRequestTemplate(of_request, encoding)
        self._templates.put(key, template)
        return template


class _TemplateAnswer:
    """Takes the one response to a request of a template."""

    __slots__ = ("_context", "_ordinary", "_template")

    def __init__(self, ordinary: InferHandler, template: HttpRequestTemplate, context: RequestContext) -> None:
        self._ordinary = ordinary
        self._template = template
        self._context = context

    def deliver(self, response: InferResponse) -> None:
        """Send the response, from its template if it has one."""
        context = self._context
        if context.answered:
            return
        try:
            sent = self._template.responses.send(context, response)
        except Exception as error:
            context.fail(error)
            return
        if not sent:
            self._ordinary.answer(context, response, self._template.encoding)


class InferEndpoint:
    """Makes the handlers of the infer endpoint. `limit`: the largest JSON, or decompressed body, in bytes."""

    def __init__(self, plane: DataPlane, limit: int, forward_pattern: str) -> None:
        self._plane = plane
        self._limit = limit
        self._forwarding = HeaderForwarding(forward_pattern)
        self._templates = FifoCache[bytes, HttpRequestTemplate](_CAPACITY)
        # Apart from the others: a client may use any number of locations.
        self._located = FifoCache[bytes, HttpRequestTemplate](_CAPACITY)

    def handler(self, head: Head, model: str, version: str = "") -> Handler:
        """Return the handler of requests with this head to a model."""
        ordinary = InferHandler(self._plane, self._limit, head, self._forwarding.of(head.fields()), model, version)
        declared = head.headers.get(HEADER_LENGTH, b"")
        json_length = int(declared) if declared.isdigit() and len(declared) <= _MOST_DIGITS else 0
        usable = ordinary.may_use_template and not head.chunked and json_length <= min(head.length, self._limit)
        if not usable or not 0 < json_length <= _LONGEST_KEY:
            return ordinary
        route = repr((model, version)).encode()
        templates = self._located if json_length == head.length else self._templates
        return TemplateHandler(self._plane, templates, ordinary, route, json_length)


def _id_start(text: bytes) -> int:
    """Return the offset of the value of an id that is the first member; 0 where it is not."""
    if text.startswith(_ID):
        return len(_ID)
    return len(_SPACED_ID) if text.startswith(_SPACED_ID) else 0


def _plain_id(raw: bytes) -> str | None:
    """Return an id that JSON writes without escapes; None where it has some."""
    if b"\\" in raw:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _is_only_sequence(text: bytes, request: InferRequest, sequence: _Sequence | None) -> bool:
    """Return whether a request has the sequence that was cut out of its JSON, and `text`, the rest, no part of one."""
    if sequence is None:
        return True
    own = (request.sequence_id, request.sequence_start, request.sequence_end)
    others = (b'"sequence_start"', b'"sequence_end"')
    return own == sequence and text.count(_SEQUENCE_ID) == 1 and not any(name in text for name in others)


def _all_raw(request: InferRequest, encoding: OutputEncoding, size: int) -> bool:
    """Return whether the `size` bytes behind a request's JSON are all of its inputs and nothing else.

    Of a request with inputs in shared memory: whether all of them lie there.
    """
    locations = encoding.locations
    if locations is not None and locations.inputs:
        try:
            return locations.hold([tensor.spec() for tensor in request.inputs.values()])
        except ConfigError:
            # An unknown datatype, which is refused when the memory is read.
            return False
    total = 0
    for tensor in request.inputs.values():
        if tensor.datatype == "BYTES":
            return False
        total += len(tensor.data)
    return total == size
