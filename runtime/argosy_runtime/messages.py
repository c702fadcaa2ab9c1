"""The one request and the one response of all front ends, schedulers and backends.

Nothing here knows a wire format. Where a model's `max_batch_size` is above 0 the first dimension is the batch.

Most requests of a client differ in their id and their tensors' data alone. What they have in common is a *template*:
made once, with all the ordinary checks, and cached where it is used: in a front end by the bytes of the request, in a
model's admission, in a model's process. A request made of a template carries its tensors' bytes as they came; the
tensors are made only where something reads them. The same holds for responses.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from .errors import ServingError
from .tensors import Array, Data, Tensor, TensorSpec, raw_tensor
from .traces import Trace

Parameter = str | int | bool | float

SHADOW_PRIORITY: Final = -1
"""The priority of copies that are sent to a shadow: below every level of a queue. No client can send it."""


class Origin(Protocol):
    """What a client sent with a request in addition to it. Models do not see it; a version may be chosen by it."""

    @property
    def protocol(self) -> str:
        """HTTP or GRPC."""

    def header(self, name: str) -> str | None:
        """Return a header (over gRPC: metadata) by its lower-case name, None where there is none."""

    def field(self, name: str) -> Parameter | None:
        """Return a field of the body that is no parameter of the request, None where there is none."""


class RequestTemplate:
    """What equal requests have in common: everything but id and data. Compared by identity, never changed.

    `inputs` in the order in which their data comes. The other fields are `InferRequest`'s. A request may be one of
    another sequence than its template: see `InferRequest.join`.
    """

    __slots__ = (
        "device_outputs",
        "inputs",
        "model_name",
        "model_version",
        "parameters",
        "priority",
        "requested_outputs",
        "sequence_end",
        "sequence_id",
        "sequence_start",
        "timeout_us",
    )

    def __init__(self, like: "InferRequest") -> None:
        self.inputs = tuple([tensor.spec() for tensor in like.inputs.values()])
        self.model_name = like.model_name
        self.model_version = like.model_version
        self.requested_outputs = like.requested_outputs
        self.parameters = like.parameters
        self.sequence_id: int | str = like.sequence_id
        self.sequence_start = like.sequence_start
        self.sequence_end = like.sequence_end
        self.priority = like.priority
        self.timeout_us = like.timeout_us
        self.device_outputs = like.device_outputs

    def leave_sequence(self) -> None:
        """Make this the template of requests without a sequence, before it is used."""
        self.sequence_id, self.sequence_start, self.sequence_end = 0, False, False

    def has_sequence_of(self, request: "InferRequest") -> bool:
        """Return whether a request has the sequence, and the flags of it, that this template has."""
        return (
            request.sequence_id == self.sequence_id
            and request.sequence_start == self.sequence_start
            and request.sequence_end == self.sequence_end
        )

    def request(self, request_id: str, raw: Sequence[Data]) -> "InferRequest":
        """Return a request like the others; `raw` are its inputs' bytes, in the order of `inputs`.

        The caller has checked their number and their sizes.
        """
        return InferRequest(
            self.model_name,
            None,
            self.model_version,
            request_id,
            self.requested_outputs,
            self.parameters,
            self.sequence_id,
            self.sequence_start,
            self.sequence_end,
            self.priority,
            self.timeout_us,
            self,
            raw,
            self.device_outputs,
        )


class QueueTrace:
    """How long a request and its steps were in queues (`ns`), in nanoseconds.

    Of a copy for a shadow also in how many queues it is `waiting` now, and whether it `calls` other models.
    """

    __slots__ = ("calls", "ns", "waiting")

    def __init__(self) -> None:
        self.calls = False
        self.ns = 0
        self.waiting = 0


class InferRequest:
    """One inference request, decoded.

    `model_version` is "" where the version policy decides. `requested_outputs` empty means all of them.
    `timeout_us` 0 and `priority` 0 mean the model's defaults. `sequence_id` 0 or "" means no sequence. `parameters` are
    shared by the requests of a template: they may be replaced, and not changed.
    `template` and `raw` are None for a request without a template; of one that has it only the inputs may be replaced,
    after which it has none. `device_outputs` are outputs that the caller accepts in a device's memory. `origin` is
    None where no client sent the request. `pinned`: the version that was chosen for it and others together, 0 for none.
    `queue_trace` is None where it is not measured, `trace` where the request is not traced; a model's own request has
    the trace of the request that it is made for. `received` is when the request began to come, in nanoseconds, 0 where
    that is unknown.
    """

    __slots__ = (
        "_inputs",
        "device_outputs",
        "id",
        "model_name",
        "model_version",
        "origin",
        "parameters",
        "pinned",
        "priority",
        "queue_trace",
        "raw",
        "received",
        "requested_outputs",
        "sequence_end",
        "sequence_id",
        "sequence_start",
        "template",
        "timeout_us",
        "trace",
    )

    def __init__(
        self,
        model_name: str,
        inputs: dict[str, Tensor] | None,
        model_version: str = "",
        id: str = "",  # noqa: A002  # the protocol's name for it
        requested_outputs: tuple[str, ...] = (),
        parameters: dict[str, Parameter] | None = None,
        sequence_id: int | str = 0,
        sequence_start: bool = False,
        sequence_end: bool = False,
        priority: int = 0,
        timeout_us: int = 0,
        template: RequestTemplate | None = None,
        raw: Sequence[Data] | None = None,
        device_outputs: frozenset[str] = frozenset(),
    ) -> None:
        self.model_name = model_name
        self._inputs = inputs
        self.model_version = model_version
        self.id = id
        self.requested_outputs = requested_outputs
        self.parameters: dict[str, Parameter] = {} if parameters is None else parameters
        self.sequence_id: int | str = sequence_id
        self.sequence_start = sequence_start
        self.sequence_end = sequence_end
        self.priority = priority
        self.timeout_us = timeout_us
        self.template = template
        self.raw = raw
        self.device_outputs = device_outputs
        self.origin: Origin | None = None
        self.pinned = 0
        self.queue_trace: QueueTrace | None = None
        self.trace: Trace | None = None
        self.received = 0

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The input tensors by name."""
        inputs = self._inputs
        if inputs is None:
            assert self.template is not None
            assert self.raw is not None
            inputs = self._inputs = {tensor.name: tensor for tensor in _tensors(self.template.inputs, self.raw)}
        return inputs

    @inputs.setter
    def inputs(self, inputs: dict[str, Tensor]) -> None:
        self._inputs = inputs
        self.template = None
        self.raw = None

    def join(self, sequence_id: int | str, start: bool, end: bool) -> None:
        """Make this a request of a sequence."""
        self.sequence_id = sequence_id
        self.sequence_start = start
        self.sequence_end = end

    @property
    def is_shadow(self) -> bool:
        """Whether this is a copy of another request, or a step of one, whose answer only is compared."""
        return self.priority == SHADOW_PRIORITY

    @property
    def log_prefix(self) -> str:
        """The beginning of Triton's messages about a request."""
        return f"[request id: {self.id or '<id_unknown>'}] "


class ResponseTemplate:
    """What equal responses have in common: everything but model, id and data. Compared by identity."""

    __slots__ = ("names", "outputs", "parameters")

    def __init__(self, outputs: Sequence[TensorSpec], parameters: dict[str, Parameter]) -> None:
        self.outputs = tuple(outputs)
        self.names = tuple([output.name for output in outputs])
        self.parameters = parameters

    def response(self, raw: Sequence[Data], final: bool = True) -> "InferResponse":
        """Return a response like the others; `raw` are its outputs' bytes, of checked number and sizes."""
        return InferResponse("", "", "", None, self.parameters, None, final, _NONE_REPEATED, self, raw)


class InferResponse:
    """One response. A decoupled model sends any number; `final` marks the last, which may be a bare flag.

    At most one of `outputs` and `error` is set, and neither of them in a bare flag; a response whose list of outputs is
    empty is an answer like others. `repeated` names the outputs that were made once for the whole
    request and stood in an earlier response to it. `template` and `raw` as in a request.
    """

    __slots__ = (
        "_outputs",
        "error",
        "final",
        "id",
        "model_name",
        "model_version",
        "parameters",
        "raw",
        "repeated",
        "template",
    )

    def __init__(
        self,
        model_name: str = "",
        model_version: str = "",
        id: str = "",  # noqa: A002  # the protocol's name for it
        outputs: list[Tensor] | None = None,
        parameters: dict[str, Parameter] | None = None,
        error: ServingError | None = None,
        final: bool = True,
        repeated: frozenset[str] = frozenset(),
        template: ResponseTemplate | None = None,
        raw: Sequence[Data] | None = None,
    ) -> None:
        self.model_name = model_name
        self.model_version = model_version
        self.id = id
        self._outputs = outputs
        self.parameters: dict[str, Parameter] = {} if parameters is None else parameters
        self.error = error
        self.final = final
        self.repeated = repeated
        self.template = template
        self.raw = raw

    @property
    def outputs(self) -> list[Tensor]:
        """The output tensors."""
        outputs = self._outputs
        if outputs is None:
            template, raw = self.template, self.raw
            if template is None or raw is None:
                return []
            outputs = self._outputs = _tensors(template.outputs, raw)
        return outputs

    @outputs.setter
    def outputs(self, outputs: list[Tensor]) -> None:
        self._outputs = outputs
        self.template = None
        self.raw = None

    def keep(self, names: tuple[str, ...]) -> None:
        """Keep only these outputs, in the order in which the model made them; some may be missing."""
        if self.template is not None and _are_among(self.template.names, names):
            return
        if outputs := self.outputs:
            self.outputs = [tensor for tensor in outputs if tensor.name in names]

    @property
    def nbytes(self) -> int:
        """The size of its outputs in bytes."""
        if self.raw is not None:
            return sum([len(data) for data in self.raw])
        return sum([tensor.nbytes for tensor in self.outputs])

    @property
    def is_empty(self) -> bool:
        """Whether this is a bare final flag, which only clients that request it are sent."""
        return self.error is None and self._outputs is None and self.template is None


def _are_among(present: tuple[str, ...], names: tuple[str, ...]) -> bool:
    for name in present:  # noqa: SIM110  # compiled, a loop costs less than a generator
        if name not in names:
            return False
    return True


_NONE_REPEATED: frozenset[str] = frozenset()

RESCHEDULED: Final = InferResponse()
"""In place of a last response: the model has released the request to be scheduled again. Compared by identity."""


def _tensors(specs: Sequence[TensorSpec], raw: Sequence[Data]) -> list[Tensor]:
    made: list[Tensor] = []
    for spec, data in zip(specs, raw, strict=True):
        made.append(raw_tensor(spec.name, spec.datatype, spec.shape, data))
    return made


Deliver = Callable[[InferResponse], None]
"""Takes the responses to one request, on the event loop; the last of them is final."""


class Submission(Protocol):
    """A submitted request. To be called on the event loop; once the request is over, all methods do nothing."""

    def cancel(self) -> None:
        """Cancel the request, because its client has gone."""

    def pause(self) -> None:
        """Have the model wait before its next response, because the client reads too slowly."""

    def resume(self) -> None:
        """Let the model go on."""


__all__ = [
    "Array",
    "Deliver",
    "InferRequest",
    "InferResponse",
    "Origin",
    "Parameter",
    "QueueTrace",
    "RESCHEDULED",
    "SHADOW_PRIORITY",
    "RequestTemplate",
    "ResponseTemplate",
    "Submission",
    "Tensor",
    "TensorSpec",
]
