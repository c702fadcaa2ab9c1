"""A request in a queue."""

from dataclasses import dataclass

from argosy_runtime.messages import InferRequest

BatchKey = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(eq=False)
class QueuedRequest:
    """One request waiting for, or holding, a place in a batch. Compared by identity.

    `size` is its batch size (1 where the model does not batch). `key` says which requests may share its batch: those
    of equal key; None goes with every other None. `deadline` is when its timeout strikes (ns), None for never.
    """

    request: InferRequest
    arrived: int
    size: int = 1
    key: BatchKey | None = None
    priority: int = 0
    deadline: int | None = None
    cancelled: bool = False
