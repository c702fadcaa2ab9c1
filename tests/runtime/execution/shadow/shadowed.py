"""A mirror between two versions that answer when a test says so."""

import numpy as np
from google.protobuf import text_format
from tests.runtime.execution.fakes import Submitted, VirtualClock
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError
from argosy_runtime.execution.shadow.comparing import ComparisonWork
from argosy_runtime.execution.shadow.mirror import Mirror
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor
from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS, Shadow
from argosy_runtime.telemetry.shadow.statistics import ShadowStatistics
from argosy_runtime.telemetry.statistics import ModelStatistics

CONFIG = """name: "model" max_batch_size: 2
input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }"""


class _Version:
    """A version that answers when a test says so."""

    def __init__(self, version: int, order: list[str]) -> None:
        self.name = "model"
        self.version = version
        self.config = text_format.Parse(CONFIG, ModelConfig())
        self.statistics = ModelStatistics()
        self.ready = True
        self.instances: int | None = None
        self.refusal: Exception | None = None
        self.requests: list[tuple[InferRequest, Deliver, Submitted]] = []
        self._order = order

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        if self.refusal is not None:
            raise self.refusal
        self._order.append(f"{self.version} got {request.id}")
        submitted = Submitted()
        self.requests.append((request, deliver, submitted))
        return submitted

    def answer(self, value: float = 1.0, at: int = 0, final: bool = True) -> None:
        """Answer a request with one number."""
        outputs = [Tensor("Y", "FP32", np.full((1, 1), value, np.float32))]
        self.requests[at][1](InferResponse(outputs=outputs, final=final))

    def fail(self, error: ServingError, at: int = 0) -> None:
        """Fail a request."""
        self.requests[at][1](InferResponse(error=error))


class Shadowed:
    """A mirror between two versions, and a client."""

    def __init__(self, limit: int = 1 << 20, **shadow: object) -> None:
        self.clock = VirtualClock()
        self.order: list[str] = []
        self.stable, self.candidate = _Version(1, self.order), _Version(2, self.order)
        self.work = ComparisonWork(limit)
        declared = Shadow(**{"version": 2, "share": MILLIONTHS, **shadow})  # type: ignore[arg-type]
        self.mirror = Mirror(declared, self.stable, self.candidate, self.work, self.clock)
        self.responses: list[InferResponse] = []

    def send(self, request_id: str = "r", value: float = 1.0, **fields: object) -> Submission:
        """Send a request as a client does."""
        inputs = {"X": Tensor("X", "FP32", np.full((1, 1), value, np.float32))}
        request = InferRequest("model", inputs, id=request_id, **fields)  # type: ignore[arg-type]
        return self.mirror.submit(request, self._deliver)

    def _deliver(self, response: InferResponse) -> None:
        self.order.append("client got it")
        self.responses.append(response)

    @property
    def statistics(self) -> ShadowStatistics:
        """The counters of the candidate."""
        assert self.candidate.statistics.shadow is not None
        return self.candidate.statistics.shadow

    @property
    def outcomes(self) -> dict[str, int]:
        """The outcomes that were counted."""
        return {outcome.value: count for outcome, count in self.statistics.outcomes.items() if count}

    def is_over(self) -> bool:
        """Return whether nothing is held any more."""
        return self.mirror.in_flight == 0 and self.work.reserved == 0
