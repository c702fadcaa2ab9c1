"""Admission: checks each request once, before any queue, against the model's declared inputs and outputs.

The check is optimized for valid requests; `modelconfig.shapes` produces Triton's error messages for others.
Requests of one template are checked once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInput

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferRequest, RequestTemplate, Tensor
from argosy_runtime.modelconfig import shapes
from argosy_runtime.modelconfig.datatypes import v2_name

from .queued_request import BatchKey

# So many templates are remembered of one model, the latest.
TEMPLATES = 1024


class Admitted:
    """The result of the check of a request, and of all others of its template.

    `size` is its batch size (1 where the model does not batch), `key` decides with which requests it may share a
    batch. `template` is that of the request as the model sees it, None where no input has a `reshape`.
    """

    __slots__ = ("key", "size", "template")

    def __init__(self, size: int, key: BatchKey | None, template: RequestTemplate | None = None) -> None:
        self.size = size
        self.key = key
        self.template = template

    def seen_by_model(self, request: InferRequest) -> InferRequest:
        """Return the request with its inputs as the model sees them; itself where they are the same."""
        if self.template is None or request.raw is None:
            return request
        seen = self.template.request(request.id, request.raw)
        seen.join(request.sequence_id, request.sequence_start, request.sequence_end)
        seen.origin = request.origin
        seen.trace = request.trace
        return seen


@dataclass(frozen=True)
class _Input:
    """One declared input. `dims` are without the batch, which `is_shape` inputs never have.

    `varies`: its size decides which requests may share a batch; of an `is_shape` input the values do too, and of an
    `is_ragged` one nothing does.
    """

    name: str
    datatype: str
    dims: tuple[int, ...]
    target: tuple[int, ...] | None
    required: bool
    varies: bool
    fixed: bool
    is_shape: bool
    is_ragged: bool

    @classmethod
    def of(cls, declared: ModelInput) -> "_Input":
        dims = tuple(declared.dims)
        return cls(
            name=declared.name,
            datatype=v2_name(declared.data_type),
            dims=dims,
            target=tuple(declared.reshape.shape) if declared.HasField("reshape") else None,
            required=not declared.optional,
            varies=-1 in dims and not declared.allow_ragged_batch,
            fixed=-1 not in dims,
            is_shape=declared.is_shape_tensor,
            is_ragged=declared.allow_ragged_batch,
        )

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Return whether a shape without the batch is one of this input's."""
        return shape == self.dims or (not self.fixed and shapes.compatible(self.dims, shape))


class Admission:
    """The check of one model's requests."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._most = config.max_batch_size
        self._inputs = {declared.name: _Input.of(declared) for declared in config.input}
        rules = self._inputs.values()
        self._required = frozenset([rule.name for rule in rules if rule.required])
        self._outputs = frozenset([declared.name for declared in config.output])
        self._keyed = [rule for rule in rules if rule.varies or rule.is_shape or not rule.required]
        self._reshapes = any(rule.target is not None for rule in rules)
        # Where values decide who may share a batch, requests of one template are not alike.
        self._remembers = not any(rule.is_shape for rule in rules)
        self._admitted = FifoCache[RequestTemplate, Admitted](TEMPLATES)

    def admit(self, request: InferRequest) -> Admitted:
        """Check a request. Raises ServingError. The model runs `Admitted.seen_by_model`."""
        template = request.template
        if template is None or not self._remembers:
            alone = Admitted(self.check(request), self.batch_key(request))
            if self._reshapes:
                request.inputs = self.reshape(request.inputs)
            return alone
        admitted = self._admitted.get(template)
        if admitted is None:
            admitted = Admitted(self.check(request), self.batch_key(request), self._reshaped(request))
            self._admitted.put(template, admitted)
        return admitted

    def check(self, request: InferRequest) -> int:
        """Return the request's batch size (1 where the model does not batch). Raises ServingError."""
        rows = self.rows(request.inputs)
        if rows is None or not request.inputs.keys() >= self._required:
            raise self._refusal(request)
        for name in request.requested_outputs:
            if name not in self._outputs:
                raise self._refusal(request)
        return rows

    def batch_key(self, request: InferRequest) -> BatchKey | None:
        """Return the key of a request, equal for those that can share a batch.

        Same inner sizes, same optional inputs.
        """
        if not self._keyed:
            return None
        inputs = request.inputs
        return tuple([self._part(rule, inputs[rule.name]) for rule in self._keyed if rule.name in inputs])

    def _part(self, rule: _Input, tensor: Tensor) -> tuple[str, tuple[int, ...], bytes | None]:
        if rule.is_shape:
            return (rule.name, tensor.shape, bytes(tensor.data))
        if rule.is_ragged:
            return (rule.name, (), None)
        return (rule.name, tensor.shape[1:] if self._most else tensor.shape, None)

    def reshape(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the inputs as the model sees them; the very same where no input has a `reshape`."""
        if not self._reshapes:
            return inputs
        return {name: self._reshape_one(self._inputs[name], tensor) for name, tensor in inputs.items()}

    def _reshaped(self, request: InferRequest) -> RequestTemplate | None:
        """Return the template of the same request in the model's own shapes; the bytes are the same."""
        if not self._reshapes:
            return None
        assert request.raw is not None
        assert request.template is not None
        alike = request.template.request(request.id, request.raw)
        alike.inputs = self.reshape(request.inputs)
        return RequestTemplate(alike)

    def rows(self, inputs: Mapping[str, Tensor]) -> int | None:
        """Return the batch size of all inputs (1 without a batch); None where names, types or shapes are wrong."""
        rows = 0
        for name, tensor in inputs.items():
            rule = self._inputs.get(name)
            if rule is None or tensor.datatype != rule.datatype:
                return None
            shape = tensor.shape
            if self._most and not rule.is_shape:
                if not shape or not 0 < shape[0] <= self._most or rows not in (0, shape[0]):
                    return None
                rows, shape = shape[0], shape[1:]
            if not rule.fits(shape) or shapes.size_problem(tensor.shape):
                return None
        return rows or 1

    def _refusal(self, request: InferRequest) -> ServingError:
        inputs = {name: (tensor.datatype, tensor.shape) for name, tensor in request.inputs.items()}
        text = shapes.first_fault(self._config, request.log_prefix, inputs, request.requested_outputs, {})
        assert text is not None
        return invalid(text)

    def _reshape_one(self, rule: _Input, tensor: Tensor) -> Tensor:
        if rule.target is None:
            return tensor
        batch = tensor.shape[:1] if self._most and not rule.is_shape else ()
        inner = shapes.reshape(rule.dims, rule.target, tensor.shape[len(batch) :])
        return tensor.reshaped((*batch, *inner))
