"""One variant of a routed model: the model behind it, what it can do now, its counters."""

import asyncio
from typing import Protocol

from argosy_common.regimes import VariantState
from argosy_runtime.messages import Deliver, InferRequest, Submission


class VariantModel(Protocol):
    """A version of a model that serves as a variant."""

    @property
    def ready(self) -> bool:
        """True if it can answer, perhaps after it was woken or restarted."""

    @property
    def takes_batches(self) -> bool:
        """True if an instance can take requests now."""

    @property
    def asleep(self) -> bool:
        """True if it is asleep."""

    def continues(self, request: InferRequest) -> bool:
        """Return whether a request belongs to a sequence that has begun here."""

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request; `deliver` gets the responses. Raises ServingError."""

    async def sleep(self) -> None:
        """Free the memory of its devices as far as it can. Do nothing while requests are open."""

    async def wake(self) -> None:
        """Take requests again. Raises ServingError."""


class VariantSlot:
    """One variant of a routed model, with its counters. `model` is None while nothing serves it.

    `in_flight`: its requests now; `requests`: those that it was sent; `moved`: those that it lost to another variant.
    `used`: when it was last used, needed, loaded or woken; `was_ready`: whether it was ready at the last look.
    `busy_ns`: the durations of all its requests together, up to `changed_at`.
    """

    def __init__(self, name: str, now: int) -> None:
        self.name = name
        self.model: VariantModel | None = None
        self.in_flight = 0
        self.busy_ns = 0
        self.changed_at = now
        self.requests = 0
        self.moved = 0
        self.used = now
        self.was_ready = False
        self.failed_at: int | None = None
        self.waking = False
        self.task: asyncio.Task[None] | None = None

    def change(self, requests: int, now: int) -> None:
        """Count so many requests more in flight, or fewer."""
        self.busy_ns = self.busy_at(now)
        self.in_flight += requests
        self.changed_at = now

    def busy_at(self, now: int) -> int:
        """Return the durations of all its requests together: divided by a time, the mean number in flight."""
        return self.busy_ns + self.in_flight * (now - self.changed_at)

    @property
    def state(self) -> VariantState:
        """What it can do with a request now."""
        model = self.model
        if model is None or not model.ready:
            return VariantState.ABSENT
        if model.asleep:
            return VariantState.WAKING if self.waking else VariantState.ASLEEP
        return VariantState.READY if model.takes_batches else VariantState.WAKING
