"""Requests of routed models at variants that a test has in its hand."""

import asyncio

from tests.runtime.execution.fakes import SECOND, Submitted, VirtualClock, settle

from argosy_runtime.errors import ErrorKind, unavailable
from argosy_runtime.execution.variants.request import submit
from argosy_runtime.execution.variants.runner import VariantRunner
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.modelconfig.parameters.variants import Variant, VariantRouting
from argosy_runtime.telemetry.statistics import ModelStatistics

IDLE = 600 * SECOND
"""The time without use after which a variant sleeps, by default."""


class _Model:
    """A variant that answers what a test says."""

    def __init__(self) -> None:
        self.ready = self.takes_batches = True
        self.asleep = False
        self.wake_cancelled = self.sleep_cancelled = False
        self.bug: Exception | None = None
        self.requests: list[tuple[Deliver, Submitted]] = []

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        if self.bug is not None:
            raise self.bug
        submitted = Submitted()
        self.requests.append((deliver, submitted))
        return submitted

    async def sleep(self) -> None:
        if self.sleep_cancelled:
            raise asyncio.CancelledError
        self.asleep = True

    async def wake(self) -> None:
        if self.wake_cancelled:
            raise asyncio.CancelledError
        self.asleep = False


def _runner() -> tuple[VirtualClock, VariantRunner, list[_Model]]:
    clock = VirtualClock()
    routing = VariantRouting((Variant("small", max_concurrency=4), Variant("large")))
    runner = VariantRunner("routed", 1, routing, ModelStatistics(), clock)
    models = [_Model(), _Model()]
    runner.follow(models)
    return clock, runner, models


async def test_a_cancelled_request_does_not_move() -> None:
    _, runner, (small, large) = _runner()
    responses: list[InferResponse] = []
    request = submit(runner, InferRequest("routed", {}), 1, responses.append)
    request.cancel()
    small.ready = False
    small.requests[0][0](InferResponse(error=unavailable("the instance has died")))
    assert large.requests == []
    assert [response.final for response in responses] == [True]
    assert runner.in_flight == 0


async def test_a_variant_whose_waking_is_cancelled_is_woken_again() -> None:
    clock, runner, (small, _) = _runner()
    small.asleep = small.wake_cancelled = True
    runner.advance()
    await settle()
    small.wake_cancelled = False
    await clock.pass_time(SECOND)
    runner.advance()
    await settle()
    assert not small.asleep


async def test_a_variant_whose_sleep_is_cancelled_sleeps_later() -> None:
    clock, runner, models = _runner()
    for model in models:
        model.sleep_cancelled = True
    runner.advance()
    await clock.pass_time(3600 * SECOND)
    runner.advance()
    await settle()
    assert [slot.task for slot in runner.slots] == [None, None]


async def test_a_variant_that_is_loaded_again_sleeps_only_after_its_idle_time() -> None:
    clock, runner, (small, large) = _runner()
    runner.advance()
    await clock.pass_time(IDLE)
    await settle()
    assert large.asleep
    runner.follow([small, None])
    await clock.pass_time(2 * IDLE)
    loaded = _Model()
    runner.follow([small, loaded])
    await clock.pass_time(IDLE - SECOND)
    await settle()
    assert not loaded.asleep
    await clock.pass_time(SECOND)
    await settle()
    assert loaded.asleep


async def test_a_bug_of_a_variant_ends_the_request() -> None:
    _, runner, (small, _) = _runner()
    responses: list[InferResponse] = []
    small.bug = KeyError("state")
    submit(runner, InferRequest("routed", {}), 1, responses.append)
    (response,) = responses
    assert response.final
    assert response.error is not None
    assert response.error.kind is ErrorKind.INTERNAL
    assert (runner.in_flight, runner.slots[0].in_flight) == (0, 0)
