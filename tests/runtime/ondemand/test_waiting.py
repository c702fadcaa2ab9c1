"""Requests that wait for their model: in order, for a bounded time, a bounded number of them."""

import numpy as np
import pytest
from tests.runtime.execution.fakes import VirtualClock

from argosy_runtime.errors import ErrorKind, ServingError, not_found
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.ondemand.waiting import Waiters, WaitingRequest

S = 1_000_000_000


class Served:
    """A version that notes what it is sent."""

    def __init__(self) -> None:
        self.requests: list[InferRequest] = []
        self.calls: list[str] = []

    def submit(self, request: InferRequest, deliver: object) -> "Served":
        self.requests.append(request)
        return self

    def cancel(self) -> None:
        self.calls.append("cancel")

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def waiters(clock: VirtualClock) -> Waiters:
    return Waiters(clock, 60 * S, most=3)


def waiting(waiters: Waiters, served: Served, timeout_us: int = 0):
    """Return a request that waits, and the errors that it is answered with."""
    answers: list[ServingError | None] = []

    def deliver(response: InferResponse) -> None:
        answers.append(response.error)

    request = WaitingRequest(InferRequest("m", {}, timeout_us=timeout_us), deliver, served.submit)
    request.wait(waiters)
    return request, answers


def test_they_enter_in_the_order_of_their_arrival(waiters: Waiters) -> None:
    order: list[int] = []
    for number in range(3):
        waiters.add("m", lambda error, number=number: order.append(number))
    waiters.wake("other")
    assert order == []
    waiters.wake("m")
    assert order == [0, 1, 2]
    assert len(waiters) == 0


def test_one_that_fails_when_it_is_woken_does_not_keep_the_others(waiters: Waiters) -> None:
    woken: list[str] = []

    def fail(error: ServingError | None) -> None:
        raise RuntimeError("no")

    waiters.add("m", fail)
    waiters.add("m", lambda error: woken.append("m"))
    waiters.add("n", fail)
    waiters.wake("m")
    waiters.close(not_found("no"))
    assert woken == ["m"]
    assert len(waiters) == 0


def test_no_more_than_so_many(waiters: Waiters) -> None:
    for _ in range(3):
        waiters.add("m", lambda error: None)
    with pytest.raises(ServingError, match="3 requests wait for models to be loaded already"):
        waiters.add("other", lambda error: None)


def test_no_more_bytes_than_so_many(clock: VirtualClock) -> None:
    waiters = Waiters(clock, 60 * S, most_bytes=1000)
    first = waiters.add("m", lambda error: None, size=600)
    array = np.zeros(101, np.float32)
    request = WaitingRequest(InferRequest("m", {"X": Tensor("X", "FP32", array)}), print, Served().submit)
    with pytest.raises(
        ServingError, match=r"its tensors have 404 bytes, .* 600; together they may have 1000"
    ) as caught:
        request.wait(waiters)
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    waiters.leave(first)
    request.wait(waiters)
    waiters.wake("m", not_found("no"))
    waiters.add("m", lambda error: None, size=1000)


async def test_a_request_waits_no_longer_than_its_timeout(waiters: Waiters, clock: VirtualClock) -> None:
    served = Served()
    _, answers = waiting(waiters, served, timeout_us=2_000_000)
    await clock.pass_time(2 * S - 1)
    assert answers == []
    await clock.pass_time(1)
    assert [error.message for error in answers] == ["Request timeout expired"]
    waiters.wake("m")
    assert not served.requests


async def test_a_request_without_a_timeout_waits_for_the_limit(waiters: Waiters, clock: VirtualClock) -> None:
    _, answers = waiting(waiters, Served())
    await clock.pass_time(60 * S)
    assert [error.message for error in answers] == ["Request for model 'm' has waited 60 s for it to be loaded"]
    assert len(waiters) == 0


async def test_what_it_waited_counts_in_the_queue(waiters: Waiters, clock: VirtualClock) -> None:
    served = Served()
    waiting(waiters, served, timeout_us=5_000_000)
    await clock.pass_time(2 * S)
    waiters.wake("m")
    assert [request.timeout_us for request in served.requests] == [3_000_000]
    await clock.pass_time(60 * S)
    assert sum(waiters.waits.counts) == 1
    assert waiters.waits.ns == 2 * S


def test_an_error_is_its_answer(waiters: Waiters) -> None:
    _, answers = waiting(waiters, Served())
    waiters.wake("m", not_found("no such model"))
    assert [error.message for error in answers] == ["no such model"]


def test_cancelled_before_and_after(waiters: Waiters) -> None:
    served = Served()
    early, answers = waiting(waiters, served)
    early.cancel()
    early.cancel()
    assert [error.kind for error in answers] == [ErrorKind.CANCELLED]
    submitted, answers = waiting(waiters, served)
    submitted.pause()
    waiters.wake("m")
    submitted.resume()
    submitted.cancel()
    assert served.calls == ["pause", "resume", "cancel"]
    assert len(served.requests) == 1
    assert answers == []


def test_closed(waiters: Waiters) -> None:
    _, answers = waiting(waiters, Served())
    waiters.close(not_found("over"))
    assert [error.message for error in answers] == ["over"]
