"""May this request enter this model? Checked once, before any queue, against the model's declared inputs and outputs.

The check is compiled for the case that all is well; what is wrong is put into Triton's words by `modelconfig.shapes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInput

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.modelconfig import shapes
from argosy_runtime.modelconfig.datatypes import v2_name

from .queued_request import BatchKey


@dataclass(frozen=True, slots=True)
class _Input:
    """One declared input. `dims` are without the batch; `varies` is whether its size decides who may share a batch."""

    name: str
    datatype: str
    dims: tuple[int, ...]
    target: tuple[int, ...] | None
    required: bool
    varies: bool
    fixed: bool

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
        )

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape without the batch is one of this input's."""
        return shape == self.dims or (not self.fixed and shapes.compatible(self.dims, shape))


class Admission:
    """What one model's requests are checked against."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._batching = config.max_batch_size > 0
        self._inputs = {declared.name: _Input.of(declared) for declared in config.input}
        self._required = frozenset(rule.name for rule in self._inputs.values() if rule.required)
        self._outputs = frozenset(declared.name for declared in config.output)
        self._keyed = [rule.name for rule in self._inputs.values() if rule.varies or not rule.required]
        self._reshapes = any(rule.target is not None for rule in self._inputs.values())

    def check(self, request: InferRequest) -> int:
        """The request's batch size (1 where the model does not batch); raises ServingError where it may not enter."""
        rows = self._rows(request.inputs)
        if rows is None or not request.inputs.keys() >= self._required:
            raise self._refusal(request)
        for name in request.requested_outputs:
            if name not in self._outputs:
                raise self._refusal(request)
        return rows

    def batch_key(self, request: InferRequest) -> BatchKey | None:
        """Which requests this one can share a batch with: same sizes beyond the batch, same optional inputs."""
        if not self._keyed:
            return None
        inputs = request.inputs
        first = 1 if self._batching else 0
        return tuple((name, inputs[name].shape[first:]) for name in self._keyed if name in inputs)

    def reshape(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The inputs as the model itself sees them; the very same where no input has a `reshape`."""
        if not self._reshapes:
            return inputs
        return {name: self._reshape_one(self._inputs[name], tensor) for name, tensor in inputs.items()}

    def _rows(self, inputs: Mapping[str, Tensor]) -> int | None:
        """The batch size all inputs agree on; None where anything is wrong."""
        rows: int | None = None
        for name, tensor in inputs.items():
            rule = self._inputs.get(name)
            if rule is None or tensor.datatype != rule.datatype:
                return None
            shape = tensor.shape
            if not self._batching:
                size, shape = 1, shape
            elif shape:
                size, shape = shape[0], shape[1:]
            else:
                return None
            if not rule.fits(shape) or rows not in (None, size):
                return None
            rows = size
        if self._batching and rows is not None and not 0 < rows <= self._config.max_batch_size:
            return None
        return 1 if rows is None else rows

    def _refusal(self, request: InferRequest) -> ServingError:
        unknown = self._unknown_output(request) or shapes.unknown_input(self._config, request.inputs)
        if unknown:
            # Of names alone Triton tells without saying whose request it is.
            return invalid(unknown)
        inputs = {name: (tensor.datatype, tensor.shape) for name, tensor in request.inputs.items()}
        text = shapes.check_request(self._config, inputs)
        if text is None:
            text = f"inference request batch-size must be >= 1 for '{self._config.name}'"
        return invalid(request.log_prefix + text)

    def _unknown_output(self, request: InferRequest) -> str | None:
        unknown = next((name for name in request.requested_outputs if name not in self._outputs), None)
        return unknown and f"unexpected inference output '{unknown}' for model '{self._config.name}'"

    def _reshape_one(self, rule: _Input, tensor: Tensor) -> Tensor:
        if rule.target is None:
            return tensor
        batch = tensor.shape[:1] if self._batching else ()
        inner = shapes.reshape(rule.dims, rule.target, tensor.shape[len(batch) :])
        return tensor.reshaped((*batch, *inner))
