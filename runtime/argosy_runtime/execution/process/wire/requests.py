"""Requests in frames: a batch for a model's process, and what that process asks of other models.

A request is these numbers: its plan (with `NEW`, a text follows that says it), its id as a text, its tensors.
"""

from typing import Final

from argosy_runtime.messages import InferRequest, RequestPlan
from argosy_runtime.tensors import Data

from .frames import Frame, FrameError, FrameWriter
from .packing import pack_request, unpack_request
from .plans import CAPACITY, SentPlans, check_tensor

NEW: Final = 1 << 32
_NUMBER: Final = NEW - 1


class RequestWriter:
    """Writes requests into frames, in the order in which those are sent."""

    def __init__(self) -> None:
        self._sent = SentPlans()
        self._plans: dict[object, RequestPlan] = {}

    def add(self, frame: FrameWriter, request: InferRequest) -> None:
        """A request, as the next thing in the frame; all of it, or an exception and nothing."""
        plan, raw = request.plan, request.raw
        if plan is None or raw is None:
            plan = self._plan(request)
            raw = [tensor.data for tensor in request.inputs.values()]
        # All that can fail comes first.
        name = request.id.encode("utf-8", "surrogatepass") if request.id else b""
        number = self._sent.find(plan)
        if number >= 0:
            frame.numbers.append(number)
        else:
            packed = pack_request(plan)
            frame.numbers.append(self._sent.add(plan) | NEW)
            frame.add_text(packed)
        frame.add_text(name)
        for spec, data in zip(plan.inputs, raw, strict=True):
            frame.add_tensor(data, spec.size >= 0)

    def _plan(self, request: InferRequest) -> RequestPlan:
        """Return a plan for a request that has none: the same for requests alike."""
        key = (
            request.model_name,
            request.model_version,
            tuple([(tensor.name, tensor.datatype, tensor.shape) for tensor in request.inputs.values()]),
            request.requested_outputs,
            # Not by value, because 1 == True == 1.0.
            repr(request.parameters) if request.parameters else "",
            request.sequence_id,
            request.sequence_start,
            request.sequence_end,
            request.priority,
            request.timeout_us,
        )
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) == CAPACITY:
                self._plans.pop(next(iter(self._plans)))
            plan = self._plans[key] = RequestPlan(request)
        return plan


class RequestReader:
    """Reads what a `RequestWriter` wrote, in the same order."""

    def __init__(self) -> None:
        self._plans: dict[int, RequestPlan] = {}

    def read(self, frame: Frame) -> InferRequest:
        """Return the next request of the frame. Raises FrameError."""
        number = frame.number()
        if number >= NEW:
            number &= _NUMBER
            if number >= CAPACITY:
                raise FrameError(f"plan number {number}")
            self._plans[number] = unpack_request(frame.text())
        plan = self._plans.get(number)
        if plan is None:
            raise FrameError(f"no plan has number {number}")
        name = frame.text()
        raw: list[Data] = []
        for spec in plan.inputs:
            data = frame.tensor(spec.size >= 0)
            check_tensor(spec, data)
            raw.append(data)
        return plan.request(name.decode("utf-8", "surrogatepass") if name else "", raw)
