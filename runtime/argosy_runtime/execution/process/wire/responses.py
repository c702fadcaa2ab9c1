"""Responses in frames: what a model's process answers, and what other models answered to it.

A response is these numbers: its template (with `NEW`, a text with it follows), its tensors; or `ERROR` and the error as
a text; or `BARE` for the final flag alone. In the frame of a run each stands behind the number of its request, with
`FINAL` where it is its last; `EVERY` stands for all requests that have no last response yet. With `AGAIN` no response
follows: the model has released the request to be scheduled again.
"""

from typing import Final

from argosy_runtime.errors import ServingError, internal
from argosy_runtime.messages import InferResponse, ResponseTemplate
from argosy_runtime.tensors import Data

from .frames import Frame, FrameError, FrameWriter
from .packing import pack_error, pack_response, unpack_error, unpack_response
from .templates import CAPACITY, SentTemplates, check_tensor

NEW: Final = 1 << 32
ERROR: Final = 1 << 33
BARE: Final = 1 << 34
FINAL: Final = 1 << 32
AGAIN: Final = 1 << 33
EVERY: Final = (1 << 32) - 1
_NUMBER: Final = NEW - 1


class ResponseWriter:
    """Writes responses into frames, in the order in which those are sent."""

    def __init__(self) -> None:
        self._sent = SentTemplates()

    def add(self, frame: FrameWriter, response: InferResponse) -> None:
        """Add a response to the frame; one that cannot be serialized becomes an error."""
        if response.error is not None:
            self._add_error(frame, response.error)
            return
        if response.is_empty:
            frame.numbers.append(BARE)
            return
        try:
            self._add_outputs(frame, response)
        except ServingError as error:
            self._add_error(frame, error)
        except Exception as fault:
            self._add_error(frame, internal(f"a response cannot be sent: {type(fault).__name__}: {fault}"))

    def _add_outputs(self, frame: FrameWriter, response: InferResponse) -> None:
        """Add the outputs: all of them, or an exception and nothing."""
        template, raw = response.template, response.raw
        if template is None or raw is None:
            outputs = response.outputs
            raw = [tensor.data for tensor in outputs]
            datatypes = [tensor.datatype for tensor in outputs]
            shapes = tuple([(tensor.name, tensor.datatype, tensor.shape) for tensor in outputs])
            # Parameters not by value, because 1 == True == 1.0.
            key: object = (shapes, repr(response.parameters)) if response.parameters else (shapes, "")
        else:
            datatypes = [spec.datatype for spec in template.outputs]
            key = template
        number = self._sent.find(key)
        if number >= 0:
            frame.numbers.append(number)
        else:
            specs = [tensor.spec() for tensor in response.outputs] if template is None else template.outputs
            packed = pack_response(specs, response.parameters)
            frame.numbers.append(self._sent.add(key) | NEW)
            frame.add_text(packed)
        for datatype, data in zip(datatypes, raw, strict=True):
            frame.add_tensor(data, datatype != "BYTES")

    def _add_error(self, frame: FrameWriter, error: ServingError) -> None:
        """Add an error instead of a response."""
        frame.numbers.append(ERROR)
        frame.add_text(pack_error(error))


class ResponseReader:
    """Reads what a `ResponseWriter` wrote, in the same order."""

    def __init__(self) -> None:
        self._templates: dict[int, ResponseTemplate] = {}

    def read(self, frame: Frame, final: bool) -> InferResponse:
        """Return the next response of the frame. Raises FrameError."""
        number = frame.number()
        if number == ERROR:
            return InferResponse("", "", "", None, None, unpack_error(frame.text()), final)
        if number == BARE:
            return InferResponse(final=final)
        if number >= NEW:
            number &= _NUMBER
            if number >= CAPACITY:
                raise FrameError(f"template number {number}")
            self._templates[number] = unpack_response(frame.text())
        template = self._templates.get(number)
        if template is None:
            raise FrameError(f"no template has number {number}")
        raw: list[Data] = []
        for spec in template.outputs:
            data = frame.tensor(spec.size >= 0)
            check_tensor(spec, data)
            raw.append(data)
        return template.response(raw, final)
