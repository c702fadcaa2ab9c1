"""A scheduler of sequences with instances that a test controls."""

import numpy as np
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.scheduling.queued_request import BatchKey, QueuedRequest
from argosy_runtime.scheduling.scheduler import Batch
from argosy_runtime.scheduling.sequences.scheduler import SequenceScheduler

US = 1_000
IDLE = 1_000 * US
CONTROLS = """
    control_input [
      { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
      { name: "END" control [ { kind: CONTROL_SEQUENCE_END fp32_false_true: [ 0, 1 ] } ] },
      { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } ] },
      { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
    ]
"""


def config(strategy: str = "direct {}", size: int = 4, more: str = "", controls: str = CONTROLS) -> ModelConfig:
    """Return a configuration with sequence batching."""
    text = f"""
        name: "m" backend: "python" max_batch_size: {size}
        input [ {{ name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }} ]
        output [ {{ name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }} ]
        sequence_batching {{ max_sequence_idle_microseconds: {IDLE // US} {strategy} {controls} {more} }}
    """
    return text_format.Parse(text, ModelConfig())


class Bench:
    """A scheduler, its free instances, and what it has decided."""

    def __init__(self, strategy: str = "direct {}", size: int = 4, more: str = "", instances: int = 1) -> None:
        self.scheduler = SequenceScheduler(config(strategy, size, more), {})
        self.free: list[int] = []
        self.now = 0
        self.running: dict[int, Batch] = {}
        self.refused: dict[str, ServingError] = {}
        self.errors: dict[str, ServingError] = {}
        self.requests: dict[str, QueuedRequest] = {}
        for number in range(1, instances + 1):
            self.add(number)

    def add(self, number: int) -> None:
        """Add an instance."""
        self.scheduler.instance_added(number)
        self.free.append(number)

    def send(
        self,
        name: str,
        sequence: int | str,
        flags: str = "",
        value: int = 1,
        key: BatchKey | None = None,
        timeout_us: int = 0,
    ) -> ServingError | None:
        """Send a request of a sequence; `flags` are S for START and E for END."""
        tensor = Tensor("IN", "INT32", np.array([[value]], np.int32))
        request = InferRequest(
            "m",
            {"IN": tensor},
            id=name,
            sequence_id=sequence,
            sequence_start="S" in flags,
            sequence_end="E" in flags,
            timeout_us=timeout_us,
        )
        queued = self.requests[name] = QueuedRequest(request, self.now, 1, key)
        error = self.scheduler.submit(queued)
        if error is not None:
            self.errors[name] = error
        return error

    def run(self) -> dict[int, list[str]]:
        """Let batches go. Return them by instance: ids of requests by position, "-" for a slot without one."""
        decision = self.scheduler.advance(self.now, self.free)
        self.wake_at = decision.wake_at
        for refusal in decision.refused:
            self.refused[refusal.queued.request.id] = refusal.why
            self.scheduler.request_over(refusal.queued, self.now)
        batches: dict[int, list[str]] = {}
        for batch in decision.batches:
            self.free.remove(batch.instance)
            self.running[batch.instance] = batch
            assert batch.slots is not None
            batches[batch.instance] = ["-" if one is None else one.request.id for one in batch.slots.requests]
        return batches

    def finish(self, number: int = 1, **outputs: Tensor) -> list[InferResponse]:
        """Answer the batch of an instance."""
        batch = self.running.pop(number)
        responses = []
        for queued in batch.requests:
            response = InferResponse(outputs=list(outputs.values()))
            self.scheduler.completed(queued, response, self.now)
            responses.append(response)
        for queued in batch.requests:
            self.scheduler.request_over(queued, self.now)
        self.free.append(number)
        return responses

    def values(self, name: str, number: int = 1) -> list[object]:
        """Return an input of the batch that an instance runs, by position."""
        slots = self.running[number].slots
        assert slots is not None
        return [message.inputs[name].array.reshape(-1)[0] for message in slots.messages]
