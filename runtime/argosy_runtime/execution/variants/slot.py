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
    """

    def __init__(self, name: str, now: int) -> None:
        self.name = name
        self.model: VariantModel | None = None
        self.in_flight = 0
        self.requests = 0
        self.moved = 0
        self.used = now
        self.was_ready = False
        self.failed_at: int | None = None
        self.waking = False
        self.task: asyncio.Task[None] | None = None

    @property
    def state(self) -> VariantState:
        """What it can do with a request now."""
        model = self.model
        if model is None or not model.ready:
            return VariantState.ABSENT
        if model.asleep:
            return VariantState.WAKING if self.waking else VariantState.ASLEEP
        return VariantState.READY if model.takes_batches else VariantState.WAKING
