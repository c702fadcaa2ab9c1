"""Sleep of a version: its instances are released while it stays in service, and loaded again by the next request."""

import asyncio
from collections.abc import Callable, Sequence

from argosy_runtime.errors import ServingError, internal, unavailable
from argosy_runtime.execution.dispatcher import Dispatcher
from argosy_runtime.execution.instance_group import NewInstance
from argosy_runtime.modelconfig import InstancePlacement

from .instances import VersionInstances

Makers = Callable[[], Sequence[tuple[InstancePlacement, NewInstance]]]


class InstanceSleep:
    """The sleep of one version's instances. `makers` returns how to make those of the present configuration.

    Requests that come meanwhile wait in the queue of the dispatcher.
    """

    def __init__(self, name: str, instances: VersionInstances, dispatcher: Dispatcher, makers: Makers) -> None:
        self.asleep = False
        self._name = name
        self._instances = instances
        self._dispatcher = dispatcher
        self._makers = makers
        self._waking: asyncio.Task[None] | None = None
        self._closed = False

    async def begin(self) -> None:
        """Release every instance once it has finished what it runs."""
        if self.asleep or self._closed:
            return
        self.asleep = True
        slots = self._instances.all
        self._instances.swap([], slots)
        await asyncio.gather(*self._dispatcher.group.swap([], [slot for _, slot in slots]))
        if self._dispatcher.owes:
            self.end_soon()

    async def end(self) -> None:
        """Load the instances again. Raises ServingError; the requests that wait get it, too."""
        task = self.end_soon()
        if task is not None:
            await asyncio.shield(task)

    def end_soon(self) -> asyncio.Task[None] | None:
        """Begin to load the instances, unless that is going on. Return the work; None if it does not sleep."""
        if self._closed or not self.asleep:
            return None
        if self._waking is None:
            self._waking = asyncio.get_running_loop().create_task(self._load())
            self._waking.add_done_callback(_retrieved)
        return self._waking

    def woken(self) -> None:
        """Note that instances were loaded by a change of the configuration."""
        self.asleep = self.asleep and not self._instances.all

    async def close(self) -> None:
        """Load nothing any more; requests that wait for it are refused."""
        self._closed = True
        if self._waking is not None:
            self._waking.cancel()
            await asyncio.gather(self._waking, return_exceptions=True)
        self._makers = list
        if self.asleep:
            self._dispatcher.refuse_waiting(unavailable(f"model '{self._name}' was unloaded"))

    async def _load(self) -> None:
        try:
            makers = self._makers()
            slots = await self._dispatcher.group.load([maker for _, maker in makers])
        except asyncio.CancelledError:
            raise
        except Exception as cause:
            error = cause if isinstance(cause, ServingError) else internal(f"{type(cause).__name__}: {cause}")
            self._waking = None
            self._dispatcher.refuse_waiting(unavailable(f"model '{self._name}' cannot be woken: {error.message}"))
            raise error from cause
        self._instances.swap(list(zip([placement for placement, _ in makers], slots, strict=True)), [])
        self._dispatcher.group.swap(slots, [])
        self.asleep, self._waking = False, None


def _retrieved(task: asyncio.Task[None]) -> None:
    """Retrieve a failure that only the waiting requests were told."""
    if not task.cancelled():
        task.exception()
