"""A model's own rule of which requests share a batch: a Python hook in place of Triton's custom batching library.

It decides after the rules of dynamic batching, so that it can make batches smaller, never larger. A request that it
does not include begins a batch of its own, so that no request waits for ever, and none is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from argosy_runtime.messages import InferRequest, Parameter
from argosy_runtime.scheduling.queued_request import QueuedRequest


@dataclass(frozen=True, slots=True)
class BatchInput:
    """An input of a request, without its data. `shape` has the batch first; `byte_size` is that of the data."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    byte_size: int


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A waiting request, as a strategy sees it. `size` is its rows, `priority` its level of the queue."""

    id: str
    size: int
    priority: int
    inputs: Mapping[str, BatchInput]
    parameters: Mapping[str, Parameter]
    requested_outputs: tuple[str, ...]


Include: TypeAlias = Callable[[Sequence[BatchRequest], BatchRequest], bool]
"""Returns whether a batch, which has one request or more, takes another one."""


class BatchStrategy:
    """A model's rule, asked for one request of the queue after the other.

    A rule that raises, or returns anything but a bool, has not included the request; `report` gets the error and the
    number of errors so far, at the first one and each time the number has doubled.
    """

    def __init__(self, include: Include, report: Callable[[Exception, int], None]) -> None:
        self._include = include
        self._report = report
        self._batch: list[BatchRequest] = []
        self._errors = 0

    def begin(self, queued: QueuedRequest) -> None:
        """Begin a batch with its first request."""
        self._batch = [_view(queued)]

    def include(self, queued: QueuedRequest) -> bool:
        """Return whether the batch takes the next request of the queue."""
        request = _view(queued)
        try:
            included = self._include(tuple(self._batch), request)
            if not isinstance(included, bool):
                raise TypeError(f"include returned {type(included).__name__}, not bool")
        except Exception as error:
            self._failed(error)
            return False
        if included:
            self._batch.append(request)
        return included

    def _failed(self, error: Exception) -> None:
        self._errors += 1
        if self._errors & (self._errors - 1) == 0:
            self._report(error, self._errors)


def _view(queued: QueuedRequest) -> BatchRequest:
    request = queued.request
    return BatchRequest(
        id=request.id,
        size=queued.size,
        priority=queued.priority,
        inputs=_inputs(request),
        parameters=request.parameters,
        requested_outputs=request.requested_outputs,
    )


def _inputs(request: InferRequest) -> dict[str, BatchInput]:
    if request.template is not None and request.raw is not None:
        # Without its tensors, which are not made yet.
        return {
            spec.name: BatchInput(spec.name, spec.datatype, spec.shape, len(data))
            for spec, data in zip(request.template.inputs, request.raw, strict=True)
        }
    return {
        name: BatchInput(name, tensor.datatype, tensor.shape, tensor.nbytes) for name, tensor in request.inputs.items()
    }


__all__ = ["BatchInput", "BatchRequest", "BatchStrategy", "Include"]
