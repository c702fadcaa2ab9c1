"""Copies of requests: equal but for their priority and their timeout, and with an id to find them by."""

from hashlib import sha256
from itertools import count
from typing import Final
from uuid import uuid4

from argosy_runtime.comparison import answers
from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import SHADOW_PRIORITY, InferRequest, RequestTemplate
from argosy_runtime.tensors import Data

_TEMPLATES: Final = 256
_DIGEST_BYTES: Final = 1 << 16


class ShadowRequests:
    """Makes copies. Requests of one template have copies of one template, so that these are as fast as theirs."""

    def __init__(self) -> None:
        self._templates = FifoCache[RequestTemplate, RequestTemplate](_TEMPLATES)
        self._prefix = f"shadow-{uuid4().hex[:8]}"
        self._numbers = count(1)

    def copy(self, request: InferRequest) -> InferRequest:
        """Return a copy of a request that has not been submitted yet. Both may be read at a time, and not be written.

        A request without an id keeps none; its copy gets one.
        """
        copy_id = request.id or f"{self._prefix}-{next(self._numbers)}"
        if request.template is None or request.raw is None:
            return _copied(request, copy_id)
        request.raw = [_read_only(data) for data in request.raw]
        template = self._templates.get(request.template)
        if template is None:
            template = RequestTemplate(_copied(request, copy_id))
            self._templates.put(request.template, template)
        copy = template.request(copy_id, request.raw)
        copy.join(request.sequence_id, request.sequence_start, request.sequence_end)
        return copy


def size_of(request: InferRequest) -> int:
    """Return the memory that a request's tensors take, about."""
    if request.raw is not None:
        return sum(len(data) for data in request.raw)
    return sum(answers.size_of(tensor) for tensor in request.inputs.values())


def _copied(request: InferRequest, copy_id: str) -> InferRequest:
    inputs = dict(request.inputs)
    for tensor in inputs.values():
        tensor.protect()
    return InferRequest(
        request.model_name,
        inputs,
        id=copy_id,
        requested_outputs=request.requested_outputs,
        parameters=dict(request.parameters),
        sequence_id=request.sequence_id,
        sequence_start=request.sequence_start,
        sequence_end=request.sequence_end,
        priority=SHADOW_PRIORITY,
    )


def _read_only(data: Data) -> Data:
    return data.toreadonly() if isinstance(data, memoryview) else data


def description(request: InferRequest) -> str:
    """Return names and shapes of a request's inputs, and a digest of their data, by which it can be recognized.

    Without a digest where they are large, since that would take milliseconds.
    """
    tensors = request.inputs.values()
    inputs = ", ".join(f"{tensor.name} {tensor.datatype}{list(tensor.shape)}" for tensor in tensors)
    if size_of(request) > _DIGEST_BYTES or any(tensor.device is not None for tensor in tensors):
        return inputs
    digest = sha256()
    for tensor in tensors:
        digest.update(tensor.data)
    return f"{inputs}; sha256 {digest.hexdigest()[:16]}"
