"""Requests in the engine that end before they have begun."""

import asyncio

from tests.runtime.backends.conftest import FakeHost

from argosy_runtime.backends.vllm.requests.open_requests import OpenRequests
from argosy_runtime.errors import ServingError, internal, unavailable


class _Stream:
    """A stream that records its error."""

    def __init__(self) -> None:
        self.is_over = False
        self.error: ServingError | None = None

    def is_cancelled(self) -> bool:
        return False

    def take(self, output: object) -> None:
        raise AssertionError("no output is expected")

    def flush(self) -> None:
        """Send nothing."""

    def fail(self, error: ServingError) -> None:
        self.is_over, self.error = True, error


class _Collector:
    """The outputs of a request, of which there are none yet."""

    request_id = "7"

    def get_nowait(self) -> None:
        """Return no output."""


class _Engine:
    """An engine that takes a request when `may_add` is set, and records which it is to abort."""

    def __init__(self) -> None:
        self.may_add = asyncio.Event()
        self.aborted: list[str] = []

    async def add(self) -> _Collector:
        await self.may_add.wait()
        return _Collector()

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
        await asyncio.wait_for(requests.wait_idle(), 5)
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
        await asyncio.wait_for(requests.wait_idle(), 5)
        assert (ended, engine.aborted) == (["ended"], ["7"])

    asyncio.run(run())
