"""Requests in frames: batches for a model's process, and its own requests to other models.

A request is these numbers: its template (with `NEW`, a text follows that says it), its id as a text, its tensors. With
`SEQUENCE` its sequence follows as a text, where that is not its template's. With `TRACED` it ends with its trace: the
id, and the context as a text.
"""

from typing import Final

from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferRequest, RequestTemplate
from argosy_runtime.tensors import Data
from argosy_runtime.traces import Trace

from .frames import Frame, FrameError, FrameWriter
from .packing import pack_request, pack_sequence, unpack_request, unpack_sequence
from .templates import CAPACITY, SentTemplates, check_tensor

NEW: Final = 1 << 32
TRACED: Final = 1 << 33
SEQUENCE: Final = 1 << 34
_NUMBER: Final = NEW - 1


class RequestWriter:
    """Writes requests into frames, in the order in which those are sent."""

    def __init__(self) -> None:
        self._sent = SentTemplates()
        self._templates = FifoCache[object, RequestTemplate](CAPACITY)

    def add(self, frame: FrameWriter, request: InferRequest) -> None:
        """Add a request to the frame: all of it, or an exception and nothing."""
        template, raw = request.template, request.raw
        if template is None or raw is None:
            template = self._template(request)
            raw = [tensor.data for tensor in request.inputs.values()]
        # All that can fail comes first.
        name = request.id.encode("utf-8", "surrogatepass") if request.id else b""
        trace = request.trace
        flags = 0 if trace is None else TRACED
        sequence = b""
        if not template.has_sequence_of(request):
            sequence = pack_sequence(request.sequence_id, request.sequence_start, request.sequence_end)
            flags |= SEQUENCE
        number = self._sent.find(template)
        if number >= 0:
            frame.numbers.append(number | flags)
        else:
            packed = pack_request(template)
            frame.numbers.append(self._sent.add(template) | NEW | flags)
            frame.add_text(packed)
        frame.add_text(name)
        for spec, data in zip(template.inputs, raw, strict=True):
            frame.add_tensor(data, spec.size >= 0)
        if sequence:
            frame.add_text(sequence)
        if trace is not None:
            frame.numbers.append(trace.id)
            frame.add_text(trace.context.encode())

    def _template(self, request: InferRequest) -> RequestTemplate:
        """Return a template for a request that has none: the same for requests alike."""
        key = (
            request.model_name,
            request.model_version,
            tuple([(tensor.name, tensor.datatype, tensor.shape) for tensor in request.inputs.values()]),
            request.requested_outputs,
            # Not by value, because 1 == True == 1.0.
            repr(request.parameters) if request.parameters else "",
            request.priority,
            request.timeout_us,
        )
        template = self._templates.get(key)
        if template is None:
            template = RequestTemplate(request)
            self._templates.put(key, template)
        return template


class RequestReader:
    """Reads what a `RequestWriter` wrote, in the same order."""

    def __init__(self) -> None:
        self._templates: dict[int, RequestTemplate] = {}

    def read(self, frame: Frame) -> InferRequest:
        """Return the next request of the frame. Raises FrameError."""
        number = frame.number()
        flags = 0
        if number >= NEW:
            flags = number & ~_NUMBER
            number &= _NUMBER
            if flags & NEW:
                if number >= CAPACITY:
                    raise FrameError(f"template number {number}")
                self._templates[number] = unpack_request(frame.text())
        template = self._templates.get(number)
        if template is None:
            raise FrameError(f"no template has number {number}")
        name = frame.text()
        raw: list[Data] = []
        for spec in template.inputs:
            data = frame.tensor(spec.size >= 0)
            check_tensor(spec, data)
            raw.append(data)
        request = template.request(name.decode("utf-8", "surrogatepass") if name else "", raw)
        if flags & SEQUENCE:
            identifier, start, end = unpack_sequence(frame.text())
            request.join(identifier, start, end)
        if flags & TRACED:
            request.trace = Trace(frame.number(), context=frame.text().decode("utf-8", "replace"))
        return request
