"""What a model sees of a sequence in addition to a request's inputs: control tensors and implicit state.

A request of a template becomes one of a template, too: controls differ in their data alone.
"""

import struct
from collections.abc import Sequence as ListLike
from typing import Any, Final

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelSequenceBatching

from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferRequest, RequestTemplate, Tensor, TensorSpec
from argosy_runtime.modelconfig.datatypes import element_size, v2_name
from argosy_runtime.tensors import Data, raw_tensor

from .sequence import Step

# So many templates are remembered of one model, the latest.
TEMPLATES: Final = 1024
_Control = ModelSequenceBatching.Control


class Flag:
    """A control tensor with two values. `kind` is START, END or READY."""

    __slots__ = ("false", "kind", "spec", "true")

    def __init__(self, name: str, control: ModelSequenceBatching, shape: tuple[int, ...]) -> None:
        self.kind = _Control.Kind.Name(control.kind).removeprefix("CONTROL_SEQUENCE_")
        datatype, layout, values = _values(control)
        self.spec = TensorSpec(name, datatype, shape)
        self.false = struct.pack(layout, values[0])
        self.true = struct.pack(layout, values[1])

    def data(self, start: bool, end: bool) -> bytes:
        """Return the value for a request with these flags, which is ready."""
        if self.kind == "START":
            return self.true if start else self.false
        if self.kind == "END":
            return self.true if end else self.false
        return self.true


def _values(control: ModelSequenceBatching) -> tuple[str, str, ListLike[Any]]:
    if control.int32_false_true:
        return "INT32", "<i", control.int32_false_true
    if control.fp32_false_true:
        return "FP32", "<f", control.fp32_false_true
    return "BOOL", "<?", control.bool_false_true


class ControlInputs:
    """The control tensors of a model, and requests with them."""

    def __init__(self, config: ModelConfig) -> None:
        shape = (1, 1) if config.max_batch_size else (1,)
        self._flags: list[Flag] = []
        self._corrid: TensorSpec | None = None
        for control_input in config.sequence_batching.control_input:
            for control in control_input.control:
                if control.kind == _Control.CONTROL_SEQUENCE_CORRID:
                    self._corrid = TensorSpec(control_input.name, v2_name(control.data_type), shape)
                else:
                    self._flags.append(Flag(control_input.name, control, shape))
        self._specs = [flag.spec for flag in self._flags]
        if self._corrid is not None:
            self._specs.append(self._corrid)
        # The flags' data, by whether a request is the start and the end of its sequence.
        self._values: list[list[Data]] = [
            [flag.data(start, end) for flag in self._flags] for start in (False, True) for end in (False, True)
        ]
        self._shapes = frozenset([tensor.name for tensor in config.input if tensor.is_shape_tensor])
        # Without a state by the template alone, else by the states' shapes, too.
        self._templates = FifoCache[object, RequestTemplate](TEMPLATES)
        self._nulls = FifoCache[RequestTemplate, InferRequest](TEMPLATES)

    def message(self, step: Step, states: list[Tensor]) -> InferRequest:
        """Return a request as the model sees it."""
        request, identifier = step.queued.request, step.sequence.id
        raw: list[Data] = self._values[2 * step.start + step.end]
        if self._corrid is not None:
            raw = [*raw, _encoded(identifier, self._corrid)]
        if request.template is None or request.raw is None:
            return self._without_template(step, self._specs, raw, states)
        template = self._template(request, request.template, self._specs, states)
        raw = [*request.raw, *raw]
        for state in states:
            raw.append(state.data)
        message = template.request(request.id, raw)
        message.join(identifier, step.start, step.end)
        message.queue_trace, message.trace = request.queue_trace, request.trace
        return message

    def null(self, like: InferRequest, states: list[Tensor]) -> InferRequest:
        """Return what stands in a slot without a request: zeros in the shapes of another one, and not ready."""
        template = like.template
        cached = self._nulls.get(template) if template is not None and not states else None
        if cached is not None:
            return cached
        inputs: dict[str, Tensor] = {}
        for tensor in like.inputs.values():
            inputs[tensor.name] = tensor if tensor.name in self._shapes else _zeros(tensor.spec())
        for flag in self._flags:
            inputs[flag.spec.name] = _of(flag.spec, flag.false)
        if self._corrid is not None:
            inputs[self._corrid.name] = _zeros(self._corrid)
        for state in states:
            inputs[state.name] = _zeros(state.spec())
        made = InferRequest(like.model_name, inputs, like.model_version)
        if template is not None and not states:
            made = _templated(made)
            self._nulls.put(template, made)
        return made

    def _template(
        self, request: InferRequest, template: RequestTemplate, specs: list[TensorSpec], states: list[Tensor]
    ) -> RequestTemplate:
        key: object = (template, tuple([state.shape for state in states])) if states else template
        cached = self._templates.get(key)
        if cached is None:
            cached = RequestTemplate(request)
            cached.inputs = (*template.inputs, *specs, *[state.spec() for state in states])
            self._templates.put(key, cached)
        return cached

    def _without_template(
        self, step: Step, specs: list[TensorSpec], raw: list[Data], states: list[Tensor]
    ) -> InferRequest:
        request = step.queued.request
        inputs = dict(request.inputs)
        for spec, data in zip(specs, raw, strict=True):
            inputs[spec.name] = _of(spec, data)
        for state in states:
            inputs[state.name] = state
        message = InferRequest(
            request.model_name,
            inputs,
            request.model_version,
            request.id,
            request.requested_outputs,
            request.parameters,
            step.sequence.id,
            step.start,
            step.end,
            request.priority,
            request.timeout_us,
            None,
            None,
            request.device_outputs,
        )
        message.queue_trace, message.trace = request.queue_trace, request.trace
        return message


def _templated(request: InferRequest) -> InferRequest:
    """Return the same request with a template, so that it is described to an instance only once."""
    raw = [tensor.data for tensor in request.inputs.values()]
    return RequestTemplate(request).request(request.id, raw)


def _of(spec: TensorSpec, data: Data) -> Tensor:
    return raw_tensor(spec.name, spec.datatype, spec.shape, data)


def _zeros(spec: TensorSpec) -> Tensor:
    """Return a tensor of zeros, or of empty strings."""
    if spec.size >= 0:
        return _of(spec, bytes(spec.size))
    count = 1
    for dim in spec.shape:
        count *= dim
    return _of(spec, bytes(4 * count))


def _encoded(identifier: int | str, spec: TensorSpec) -> bytes:
    """Return a correlation id as the tensor's data; of an integer the low bytes, as in Triton."""
    if isinstance(identifier, str):
        text = identifier.encode("utf-8", "surrogatepass")
        return struct.pack("<I", len(text)) + text
    size = element_size(spec.datatype) or 0
    return (identifier & ((1 << (8 * size)) - 1)).to_bytes(size, "little") if size else bytes(4)
