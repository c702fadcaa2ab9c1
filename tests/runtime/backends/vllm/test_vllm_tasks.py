"""Requests in the engine that end before they have begun."""

import asyncio
from collections.abc import AsyncGenerator

from tests.runtime.backends.conftest import FakeHost

from argosy_runtime.backends.vllm.requests.tasks import RequestTasks
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


async def _outputs() -> AsyncGenerator[object, None]:
    yield None


def test_a_request_that_is_cancelled_before_its_first_step_ends() -> None:
    async def run() -> list[str]:
        tasks = RequestTasks(FakeHost(), lambda error: internal(str(error)))
        ended: list[str] = []
        tasks.begin(_Stream(), _outputs(), lambda: ended.append("ended"))
        tasks.fail_all(unavailable("the model was unloaded"))
        await asyncio.wait_for(tasks.wait_idle(), 5)
        return ended

    assert asyncio.run(run()) == ["ended"]
