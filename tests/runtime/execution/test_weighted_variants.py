"""Requests that move between variants with weights."""

from typing import Any

import pytest

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError
from argosy_runtime.execution.clock import LoopClock
from argosy_runtime.execution.variants.request import submit
from argosy_runtime.execution.variants.runner import VariantRunner
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.modelconfig.parameters.variants import Variant, VariantRouting
from argosy_runtime.telemetry.statistics import ModelStatistics


class Submitted:
    def cancel(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class FullModel:
    """A variant that refuses every request after it has taken it."""

    ready = takes_batches = True
    asleep = False

    def __init__(self) -> None:
        self.requests: list[Deliver] = []

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        self.requests.append(deliver)
        return Submitted()

    def refuse(self) -> None:
        error = ServingError(ErrorKind.UNAVAILABLE, "the queue is full", FailureReason.REJECTED)
        self.requests[-1](InferResponse("m", "1", "", error=error, final=True))

    async def sleep(self) -> None: ...

    async def wake(self) -> None: ...


@pytest.mark.parametrize(("weights", "moved"), [((1, 1), 1), ((1, 0), 0)])
async def test_a_request_moves_only_to_a_variant_with_a_weight(weights: tuple[int, int], moved: int) -> None:
    variants = tuple(Variant(name, weight=weight) for name, weight in zip("ab", weights, strict=True))
    runner = VariantRunner("alias", 1, VariantRouting(variants), ModelStatistics(), LoopClock())
    first, second = FullModel(), FullModel()
    runner.follow([first, second])
    responses: list[Any] = []
    submit(runner, InferRequest("alias", {}), 1, responses.append)
    first.refuse()
    assert (runner.slots[0].moved, len(second.requests)) == (moved, moved)
    if moved:
        second.refuse()
    (response,) = responses
    assert (response.error.message, response.error.reason) == ("the queue is full", FailureReason.REJECTED)
    runner.close()
