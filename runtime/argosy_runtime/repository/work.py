"""Work of the registry's own: it goes on when whoever asked for it has gone, and tells of whatever goes wrong."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from argosy_runtime.errors import ServingError, internal, unavailable

Result = TypeVar("Result")
_log = logging.getLogger("argosy.repository")


class OwnedWork:
    """Tasks that nobody outside can cancel. All methods run on the event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do it and return what it does; a caller who is cancelled leaves it running.

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
            # Whoever would have been told may have gone.
            task.exception()

    async def cancel(self) -> None:
        """End all of it, and take nothing on any more; returns when everything has freed what it held."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def serving_error(cause: Exception) -> ServingError:
    """Any exception as what a client is told; one that nobody foresaw goes to the log with where it came from."""
    if isinstance(cause, ServingError):
        return cause
    _log.error("unexpected error", exc_info=cause)
    return internal(f"{type(cause).__name__}: {cause}")


def _stopping() -> Exception:
    return unavailable("Server is stopping, models are neither loaded nor unloaded any more")
