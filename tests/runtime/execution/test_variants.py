"""Requests of routed models at variants that a test has in its hand."""

import asyncio

import numpy as np
import pytest
from tests.runtime.execution.fakes import SECOND, Submitted, VirtualClock, settle

from argosy_runtime.errors import ErrorKind, internal, unavailable
from argosy_runtime.execution.variants.request import submit
from argosy_runtime.execution.variants.runner import VariantRunner
from argosy_runtime.execution.variants.speeds import new_tokens
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor
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
        self.sequences: set[int | str] = set()

    def continues(self, request: InferRequest) -> bool:
        return request.sequence_id in self.sequences

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


async def test_a_sequence_stays_with_the_variant_where_it_began() -> None:
    _, runner, (small, large) = _runner()
    large.sequences.add(7)
    for sequence in (7, 8, 0):
        submit(runner, InferRequest("routed", {}, sequence_id=sequence), 1, lambda _: None)
    assert (len(large.requests), len(small.requests)) == (1, 2)


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


def _answer(tokens: int | None = None, *, final: bool = True) -> InferResponse:
    tokens_out = [] if tokens is None else [Tensor("num_output_tokens", "UINT32", np.array([tokens], np.uint32))]
    return InferResponse(outputs=[Tensor("text_output", "BYTES", np.array([b"x"], object)), *tokens_out], final=final)


async def _level(
    clock: VirtualClock, model: _Model, runner: VariantRunner, in_flight: int, seconds: float, *new: int
) -> None:
    """Send so many requests at once, which a variant answers after so many seconds with so many `new` tokens each."""
    for _ in range(in_flight):
        submit(runner, InferRequest("routed", {}), 1, lambda response: None)
    await clock.pass_time(round(seconds * SECOND))
    for deliver, _ in model.requests:
        for tokens in new:
            deliver(_answer(tokens, final=False))
        deliver(InferResponse(final=True) if new else _answer())
    model.requests.clear()


def _observed(runner: VariantRunner) -> tuple[float | None, float | None, int, bool | None] | None:
    one = runner.series()[0].observed
    return None if one is None else (one.low, one.high, one.requests, one.fits)


async def test_the_traffic_shows_that_a_crossover_no_longer_fits() -> None:
    clock, runner, (small, large) = _runner()
    assert _observed(runner) is None
    for _ in range(20):
        await _level(clock, small, runner, 4, 0.4, 10, 10)
    small.ready = False
    assert _observed(runner) is None, "the other variant was not seen with as many in flight"
    for _ in range(20):
        await _level(clock, large, runner, 4, 0.2, 20)
    assert _observed(runner) == (None, 4.0, 80, False)
    following = VariantRunner("routed", 2, VariantRouting((Variant("small", max_concurrency=2), Variant("large"))),
                              ModelStatistics(), clock)  # fmt: skip
    following.continue_from(runner)
    assert _observed(following) == (None, 4.0, 80, True), "the crossover is now below what was measured"


async def test_a_changed_list_of_variants_goes_on_in_the_variant_of_the_regime() -> None:
    clock, runner, _ = _runner()
    for _ in range(9):
        runner.begin()
    assert (runner.regimes.current, runner.regimes.changes) == (1, 1)
    variants = (Variant("least", max_concurrency=1), Variant("small", max_concurrency=4), Variant("large"))
    following = VariantRunner("routed", 2, VariantRouting(variants), ModelStatistics(), clock)
    following.continue_from(runner)
    assert (following.regimes.current, following.regimes.changes) == (2, 1)
    gone = VariantRunner("routed", 3, VariantRouting(variants[:2]), ModelStatistics(), clock)
    gone.continue_from(following)
    assert gone.regimes.current == 1


async def test_requests_without_tokens_do_not_count_once_others_have_some() -> None:
    clock, runner, (small, large) = _runner()
    for _ in range(20):
        await _level(clock, small, runner, 4, 0.4)
    small.ready = False
    for _ in range(20):
        await _level(clock, large, runner, 4, 0.2)
    assert _observed(runner) == (None, 4.0, 80, False), "of models without tokens each row counts"
    await _level(clock, large, runner, 1, 0.2, 3)
    assert _observed(runner) is None


async def test_requests_while_another_variant_is_busy_do_not_count() -> None:
    clock, runner, (small, large) = _runner()
    for _ in range(20):
        await _level(clock, small, runner, 4, 0.4, 20)
    submit(runner, InferRequest("routed", {}), 1, lambda response: None)
    (running,) = small.requests
    small.ready = False
    for _ in range(20):
        await _level(clock, large, runner, 4, 0.2, 20)
    assert _observed(runner) is None
    running[0](_answer(1))
    for _ in range(20):
        await _level(clock, large, runner, 4, 0.2, 20)
    assert _observed(runner) is not None


async def test_failed_requests_are_no_measurement() -> None:
    clock, runner, (small, large) = _runner()
    for _ in range(20):
        await _level(clock, small, runner, 4, 0.4, 20)
    small.ready = False
    for _ in range(80):
        submit(runner, InferRequest("routed", {}), 1, lambda response: None)
        await clock.pass_time(SECOND)
        large.requests.pop()[0](InferResponse(error=internal("it cannot")))
    assert _observed(runner) is None


@pytest.mark.parametrize(
    ("response", "tokens"),
    [
        (_answer(7), 7),
        (_answer(), 0),
        (InferResponse(outputs=[Tensor("num_output_tokens", "UINT32", np.array([3, 4], np.uint32))]), 7),
        (InferResponse(error=internal("it cannot")), 0),
        (InferResponse(), 0),
    ],
)
def test_new_tokens_are_those_of_all_choices(response: InferResponse, tokens: int) -> None:
    assert new_tokens(response) == tokens
