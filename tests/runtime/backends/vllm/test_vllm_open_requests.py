"""Requests in the engine: those that end before they have begun, and those that fail while others go on."""

import asyncio
import logging
from collections.abc import Callable

import pytest
from tests.runtime.backends.conftest import FakeHost

from argosy_runtime.backends.vllm.reports import EngineReports
from argosy_runtime.backends.vllm.requests import open_requests
from argosy_runtime.backends.vllm.requests.open_requests import OpenRequests
from argosy_runtime.errors import ErrorKind, ServingError, internal, unavailable


class _Stream:
    """A stream that records its error."""

    def __init__(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        self.is_over = False
        self.error: ServingError | None = None
        self.is_cancelled = cancelled

    def take(self, output: object) -> None:
        raise AssertionError("no output is expected")

    def flush(self) -> None:
        """Send nothing."""

    def fail(self, error: ServingError) -> None:
        self.is_over, self.error = True, error


class _Collector:
    """The outputs of a request, of which there are none yet. It counts the looks for them."""

    request_id = "7"

    def __init__(self) -> None:
        self.looks = 0

    def get_nowait(self) -> None:
        """Return no output."""
        self.looks += 1


class _Engine:
    """An engine that takes a request when `may_add` is set, and records which it is to abort."""

    def __init__(self) -> None:
        self.may_add = asyncio.Event()
        self.aborted: list[str] = []
        self.collectors: list[_Collector] = []

    async def add(self) -> _Collector:
        await self.may_add.wait()
        self.collectors.append(_Collector())
        return self.collectors[-1]

    async def abort(self, request_id: str, internal: bool = False) -> None:
        assert internal
        self.aborted.append(request_id)


def test_a_request_that_fails_while_the_engine_takes_it_is_aborted() -> None:
    async def run() -> None:
        engine, stream = _Engine(), _Stream()
        requests = OpenRequests(engine, FakeHost(), lambda error: internal(str(error)))
        ended: list[str] = []
        requests.begin(stream, engine.add(), lambda: ended.append("ended"))
        await asyncio.sleep(0)
        requests.fail_all(unavailable("the model was unloaded"))
        assert (ended, engine.aborted) == (["ended"], [])
        engine.may_add.set()
        await asyncio.wait_for(requests.wait_idle(), 60)
        assert engine.aborted == ["7"]
        assert stream.error is not None

    asyncio.run(run())


def test_a_request_that_fails_is_aborted() -> None:
    async def run() -> None:
        engine, stream = _Engine(), _Stream()
        engine.may_add.set()
        requests = OpenRequests(engine, FakeHost(), lambda error: internal(str(error)))
        ended: list[str] = []
        requests.begin(stream, engine.add(), lambda: ended.append("ended"))
        for _ in range(3):
            await asyncio.sleep(0)  # the engine takes it
        requests.fail_all(unavailable("the model was unloaded"))
        await asyncio.wait_for(requests.wait_idle(), 60)
        assert (ended, engine.aborted) == (["ended"], ["7"])

    asyncio.run(run())


def test_a_request_that_begins_reads_no_outputs_of_others() -> None:
    async def run() -> None:
        engine = _Engine()
        engine.may_add.set()
        requests = OpenRequests(engine, FakeHost(), lambda error: internal(str(error)))
        for _ in range(5):
            requests.begin(_Stream(), engine.add(), lambda: None)
        for _ in range(3):
            await asyncio.sleep(0)  # the engine takes them
        assert [collector.looks for collector in engine.collectors] == [1] * 5
        requests.fail_all(unavailable("the model was unloaded"))
        await asyncio.wait_for(requests.wait_idle(), 60)

    asyncio.run(run())


def test_a_sweep_that_fails_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_requests, "SWEEP_SECONDS", 0.0)
    answers = iter([OSError("the connection is closed"), False, True])

    def is_cancelled() -> bool:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    async def run() -> list[str]:
        failures: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: failures.append(str(context["exception"]))
        )
        engine, stream = _Engine(), _Stream(is_cancelled)
        engine.may_add.set()
        requests = OpenRequests(engine, FakeHost(), lambda error: internal(str(error)))
        requests.begin(stream, engine.add(), lambda: None)
        await asyncio.wait_for(requests.wait_idle(), 60)
        assert stream.error is not None
        assert stream.error.kind is ErrorKind.CANCELLED
        return failures

    assert asyncio.run(run()) == ["the connection is closed"]


def test_a_request_whose_error_cannot_be_sent_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(error: ServingError) -> None:
        raise OSError("the connection is closed")

    async def run() -> None:
        engine, stream = _Engine(), _Stream()
        engine.may_add.set()
        monkeypatch.setattr(stream, "fail", fail)
        requests = OpenRequests(engine, FakeHost(), lambda error: internal(str(error)))
        ended: list[str] = []
        requests.begin(stream, engine.add(), lambda: ended.append("ended"))
        for _ in range(3):
            await asyncio.sleep(0)  # the engine takes it
        with pytest.raises(OSError, match="the connection is closed"):
            requests.fail_all(unavailable("the model was unloaded"))
        await asyncio.wait_for(requests.wait_idle(), 60)
        assert (ended, engine.aborted) == (["ended"], ["7"])

    asyncio.run(run())


def test_what_the_outputs_of_a_step_raise_does_not_reach_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise OSError("the connection is closed")

    reports, host = EngineReports(0), FakeHost()
    reports.after_step = fail
    with caplog.at_level(logging.ERROR):
        reports.record(None, None)
    assert "the outputs of a step could not all be sent" in caplog.text
    assert "OSError: the connection is closed" in caplog.text
    reports.send(host)
    assert len(host.states) == 1
