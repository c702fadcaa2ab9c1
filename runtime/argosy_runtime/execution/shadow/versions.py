"""What a shadow knows of the stable version and of the candidate."""

from typing import Protocol

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.telemetry.statistics import ModelStatistics


class ComparedVersion(Protocol):
    """A version that takes requests, as the stable one or as the candidate."""

    name: str
    version: int
    config: ModelConfig
    statistics: ModelStatistics

    @property
    def ready(self) -> bool:
        """True if it can answer."""

    @property
    def instances(self) -> int | None:
        """Number of instances that take batches; None for one without instances of its own, as an ensemble."""

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request. Raises ServingError where it is refused at once; other errors are delivered."""


def has_executions(version: ComparedVersion) -> bool:
    """Return whether the version works while its instances are busy: an ensemble works in those of other models, and an
    engine that answers later goes on after its execution.
    """
    return version.instances is not None and not version.statistics.answers_later
