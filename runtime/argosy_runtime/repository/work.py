"""Work of the registry's own: it goes on when its caller has gone, and errors are logged."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from argosy_runtime.errors import ServingError, internal, unavailable

Result = TypeVar("Result")
_log = logging.getLogger("argosy.repository")


class OwnedWork:
    """Tasks that no caller can cancel. All methods run on the event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run the work and return its result; a cancelled caller leaves it running.

        Raises ServingError where the server stops before it is done.
        """
        if self._closed:
            work.close()
            raise _stopping()
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and not (caller is not None and caller.cancelling()):
                raise _stopping() from None
            raise

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Retrieved: the caller may have gone.
            task.exception()

    async def cancel(self) -> None:
        """Cancel all work, and accept none any more. Returns when all of it has released its resources."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def serving_error(cause: Exception) -> ServingError:
    """Return any exception as a client's error; an unexpected one is logged with its traceback."""
    if isinstance(cause, ServingError):
        return cause
    _log.error("unexpected error", exc_info=cause)
    return internal(f"{type(cause).__name__}: {cause}")


def _stopping() -> Exception:
    return unavailable("Server is stopping, models are neither loaded nor unloaded any more")
