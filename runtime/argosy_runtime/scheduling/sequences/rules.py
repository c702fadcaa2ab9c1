"""The settings of sequence batching, and the requests that they refuse."""

from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelSequenceBatching

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig.datatypes import v2_name

_MICROSECOND = 1_000
_Control = ModelSequenceBatching.Control


@dataclass(frozen=True)
class SequenceRules:
    """The rules of a model's sequences. Times are nanoseconds.

    `slots`: sequences that an instance has at a time. `idle_ns`: how long one may be without a request. `utilization`:
    the share of slots with a request at which a batch of `direct` does not wait for `delay_ns`. `iterative`: requests
    are scheduled again until their model has finished them, and those without an id are sequences of their own.
    Nothing runs before `hold` requests wait in slots, and with them `hold_backlog` in the backlog (`direct`), or `hold`
    at the same instance (`oldest`): a debugging aid.
    """

    model: str
    oldest: bool
    slots: int
    max_batch_size: int
    idle_ns: int
    delay_ns: int
    utilization: float = 0.0
    preferred: frozenset[int] = frozenset()
    iterative: bool = False
    hold: int = 0
    hold_backlog: int = 0

    @classmethod
    def of(cls, config: ModelConfig, hold: int = 0, hold_backlog: int = 0) -> "SequenceRules":
        """Read the rules from a complete configuration."""
        batching = config.sequence_batching
        size = max(1, config.max_batch_size)
        oldest = batching.HasField("oldest")
        delay = batching.oldest.max_queue_delay_microseconds if oldest else batching.direct.max_queue_delay_microseconds
        return cls(
            model=config.name,
            oldest=oldest,
            slots=(batching.oldest.max_candidate_sequences if oldest else 0) or size,
            max_batch_size=size,
            idle_ns=batching.max_sequence_idle_microseconds * _MICROSECOND,
            delay_ns=delay * _MICROSECOND,
            utilization=batching.direct.minimum_slot_utilization,
            preferred=frozenset(batching.oldest.preferred_batch_size),
            iterative=batching.iterative_sequence,
            hold=hold,
            hold_backlog=hold_backlog,
        )


class RequestRules:
    """The check of a request before it enters a sequence."""

    def __init__(self, config: ModelConfig) -> None:
        self._model = config.name
        self._iterative = bool(config.sequence_batching.iterative_sequence)
        self._corrid = ""
        self._datatype = ""
        for control_input in config.sequence_batching.control_input:
            for control in control_input.control:
                if control.kind == _Control.CONTROL_SEQUENCE_CORRID:
                    self._corrid, self._datatype = control_input.name, v2_name(control.data_type)

    def refusal(self, request: InferRequest, size: int) -> ServingError | None:
        """Return why a request of `size` rows cannot be one of a sequence, None if it can."""
        identifier = request.sequence_id
        if self._corrid and isinstance(identifier, str) != (self._datatype == "BYTES"):
            datatype = "BYTES" if isinstance(identifier, str) else "UINT64"
            return invalid(
                f"{request.log_prefix}sequence batching control '{self._corrid}' data-type is '{datatype}', but model "
                f"'{self._model}' expects '{self._datatype}'"
            )
        if size > 1:
            return invalid(
                f"inference request to model '{self._model}' must specify batch-size 1 due to requirements of sequence "
                "batcher"
            )
        if not identifier and not self._iterative:
            return invalid(
                f"inference request to model '{self._model}' must specify a non-zero or non-empty correlation ID"
            )
        return None

    def not_begun(self, identifier: int | str, why: str) -> ServingError:
        """Return the error of a request whose sequence is not known, or has ended: `why`, "" for no reason."""
        text = (
            f"inference request for sequence {identifier} to model '{self._model}' must specify the START flag on the "
            "first request of the sequence"
        )
        return invalid(f"{text}: {why}" if why else text)

    def lost(self, identifier: int | str) -> str:
        """Return why a sequence has ended whose instance has ended."""
        return f"sequence {identifier} of model '{self._model}' has ended, because the instance that it ran on was lost"
