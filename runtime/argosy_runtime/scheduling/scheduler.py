"""The interface of schedulers, between a dispatcher and its instances.

Events only change a scheduler's state: `submit`, `cancel`, and what only some schedulers follow, such as ends of
requests and of instances. What follows from them (batches, refusals, the time of the next decision) is the `Decision`
of `advance`, which the dispatcher asks for after each of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.messages import InferRequest

from .queued_request import QueuedRequest


class Batch:
    """The requests that one instance runs now. `slots` is set where the instance gets other ones."""

    __slots__ = ("instance", "requests", "slots")

    def __init__(self, instance: int, requests: list[QueuedRequest], slots: "Slots | None" = None) -> None:
        self.instance = instance
        self.requests = requests
        self.slots = slots


class Slots:
    """A batch by position: what the instance gets, and the request that it stands for.

    None stands for no request: its response goes nowhere, and nothing counts it.
    """

    __slots__ = ("messages", "requests")

    def __init__(self, messages: list[InferRequest], requests: "list[QueuedRequest | None]") -> None:
        self.messages = messages
        self.requests = requests


class Decision:
    """Batches to run now, requests to refuse, and when to decide again (None: at the next event)."""

    __slots__ = ("batches", "refused", "wake_at")

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.refused: list[Refusal] = []
        self.wake_at: int | None = None


class Refusal:
    """An accepted request that will not run."""

    __slots__ = ("queued", "why")

    def __init__(self, queued: QueuedRequest, why: ServingError) -> None:
        self.queued = queued
        self.why = why


class Scheduler(ABC):
    """The requests of one model version that wait, and the rules by which batches of them are formed.

    Every request that `submit` accepts leaves by exactly one of: a batch, `Decision.refused`, `cancel`, `drain`. Times
    are nanoseconds.
    """

    @property
    @abstractmethod
    def pending(self) -> int:
        """Number of requests that wait."""

    @abstractmethod
    def apply(self, config: ModelConfig) -> None:
        """Apply another configuration. Waiting requests keep order and timeouts, and are not refused by new limits."""

    @abstractmethod
    def submit(self, queued: QueuedRequest) -> ServingError | None:
        """Queue a request that arrives now. Return why it is refused, or None."""

    @abstractmethod
    def cancel(self, queued: QueuedRequest) -> bool:
        """Remove a waiting request. Return False if it does not wait here any more."""

    @abstractmethod
    def drain(self) -> list[QueuedRequest]:
        """Remove and return all waiting requests."""

    @abstractmethod
    def advance(self, now: int, free: Sequence[int]) -> Decision:
        """Decide what runs at `now`, at most one batch on each free instance.

        The fastest instances come first, and of equal ones the one that has been free the longest.
        """


def not_rescheduled() -> ServingError:
    """Return the error of a request that is released to a scheduler that does not schedule it again."""
    return invalid(
        "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle "
        "such a flag."
    )
