"""Digests of requests, equal for those that a model answers alike: the keys of the response cache.

A digest is of everything that a model sees of a request but its id, its timeout and its priority: inputs by name with
type, shape and data, in any order; requested outputs in theirs; parameters; correlation id and flags. Requests in JSON,
in binary and over gRPC have the same one. It is BLAKE3 with a secret, so no client can make two requests collide.
"""

from collections.abc import Sequence
from typing import Final

from blake3 import blake3

from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferRequest, RequestTemplate, TensorSpec
from argosy_runtime.tensors import Data

DIGEST_BYTES: Final = 16
# So many templates of one version are remembered.
_TEMPLATES: Final = 1024


class _Beginning:
    """What the digests of requests with one template have in common, and the order in which their data follows."""

    __slots__ = ("hash", "order")

    def __init__(self, begun: blake3, order: Sequence[int]) -> None:
        self.hash = begun
        self.order = order


class RequestKeys:
    """Keys of one version's requests. `secret` (32 bytes) differs between versions and between their loads.

    A request for all `outputs` in this order is equal to one that names none.
    """

    def __init__(self, secret: bytes, outputs: Sequence[str] = ()) -> None:
        self._secret = secret
        self._outputs = tuple(outputs)
        self._beginnings = FifoCache[RequestTemplate, _Beginning](_TEMPLATES)

    def key(self, request: InferRequest) -> bytes | None:
        """Return the key of a request; None where an input is in a device's memory."""
        template, raw = request.template, request.raw
        if template is None or raw is None or not template.has_sequence_of(request):
            return self._key_of_inputs(request)
        beginning = self._beginnings.get(template)
        if beginning is None:
            beginning = self._begin(request, template.inputs)
            self._beginnings.put(template, beginning)
        return _finished(beginning, raw)

    def _key_of_inputs(self, request: InferRequest) -> bytes | None:
        tensors = list(request.inputs.values())
        if any(tensor.device is not None and tensor.raw is None for tensor in tensors):
            return None
        beginning = self._begin(request, [tensor.spec() for tensor in tensors])
        return _finished(beginning, [tensor.data for tensor in tensors])

    def _begin(self, request: InferRequest, inputs: Sequence[TensorSpec]) -> _Beginning:
        order = sorted(range(len(inputs)), key=lambda index: inputs[index].name)
        description = (
            request.requested_outputs or self._outputs,
            sorted(request.parameters.items(), key=lambda parameter: parameter[0]),
            (request.sequence_id, request.sequence_start, request.sequence_end),
            [inputs[index].key for index in order],
        )
        begun = blake3(repr(description).encode(), key=self._secret)
        return _Beginning(begun, order)


def _finished(beginning: _Beginning, raw: Sequence[Data]) -> bytes:
    digest = beginning.hash.copy()
    for index in beginning.order:
        data = raw[index]
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest(length=DIGEST_BYTES)
