"""A request in a queue, and then at an instance."""

from typing import Protocol

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError
from argosy_runtime.messages import Deliver, InferRequest, InferResponse

BatchKey = tuple[tuple[str, tuple[int, ...], bytes | None], ...]
"""Equal for requests that may share a batch: of each deciding input the name, the shape without the batch and, where
they decide it too, the values."""


class Owner(Protocol):
    """The dispatcher of a queued request."""

    def cancel(self, queued: "QueuedRequest") -> None:
        """Cancel a request whose client has gone."""


class RunningBatch(Protocol):
    """The batch that a request runs in, at `index`."""

    def pause(self, index: int) -> None:
        """Hold the responses to a request until `resume`."""

    def resume(self, index: int) -> None:
        """Resume the responses to a request."""

    def cancel(self, index: int) -> None:
        """Cancel a request whose client has gone."""


class QueuedRequest:
    """One request from its arrival to its last response. Compared by identity; times are nanoseconds.

    `size` is its batch size (1 where the model does not batch). Requests of equal `key` may share a batch; None is
    equal to None. `deadline` is when its timeout expires, None for never; `ticket` its number among those that have
    one. `run` is the batch it runs in, at `index`, from `started` on. `responded` is the time of its last non-final
    response, 0 before; `responses` is the number of those of a decoupled model. It is `over` when it has its last
    response, `executed` when its batch has run, `succeeded` when it was answered without failure.
    """

    __slots__ = (
        "arrived",
        "cancelled",
        "deadline",
        "deliver",
        "executed",
        "index",
        "key",
        "over",
        "owner",
        "paused",
        "priority",
        "request",
        "responded",
        "responses",
        "run",
        "size",
        "started",
        "succeeded",
        "ticket",
    )

    def __init__(
        self,
        request: InferRequest,
        arrived: int,
        size: int = 1,
        key: BatchKey | None = None,
        deliver: Deliver | None = None,
        owner: Owner | None = None,
    ) -> None:
        self.request = request
        self.arrived = arrived
        self.size = size
        self.key = key
        self.deliver: Deliver = discard if deliver is None else deliver
        self.owner = owner
        self.priority = 0
        self.deadline: int | None = None
        self.ticket = 0
        self.started = 0
        self.responded = 0
        self.responses = 0
        self.run: RunningBatch | None = None
        self.index = 0
        self.cancelled = False
        self.paused = False
        self.over = False
        self.executed = False
        self.succeeded = False

    def cancel(self) -> None:
        if self.owner is not None:
            self.owner.cancel(self)

    def pause(self) -> None:
        self.paused = True
        if self.run is not None:
            self.run.pause(self.index)

    def resume(self) -> None:
        self.paused = False
        if self.run is not None:
            self.run.resume(self.index)


def discard(response: InferResponse) -> None:
    """Drop a response that nothing waits for."""


def cancellation(request: InferRequest) -> ServingError:
    """Return the error of a request whose client has gone."""
    text = f"{request.log_prefix}Request was cancelled"
    return ServingError(ErrorKind.CANCELLED, text, FailureReason.CANCELED)
