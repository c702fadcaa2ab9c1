"""Sleep of a version, which stays in service: its engines sleep where they can, other instances are released.

    begin   no request is open: instances leave dispatch; each is asked to sleep (`Sleep`), and released if it cannot
    end     sleeping instances are woken (`Wake`), or else all are loaded; then they take requests again

A change of the configuration defers the sleep (`defer`, `allow`), so that it applies to instances that serve.

Requests that come meanwhile wait in the dispatcher's queue. They end the sleep, as soon as it has begun.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from argosy_runtime.backends.engines.commands import Sleep, Wake
from argosy_runtime.errors import ServingError, unavailable
from argosy_runtime.execution.dispatching.dispatcher import Dispatcher
from argosy_runtime.execution.instance import Instance
from argosy_runtime.execution.instance_group import NewInstance, Slot
from argosy_runtime.modelconfig import InstancePlacement
from argosy_runtime.repository.work import serving_error

from .instances import VersionInstances

_log = logging.getLogger("argosy.repository")

Makers = Callable[[], Sequence[tuple[InstancePlacement, NewInstance]]]
UpdateAdapters = Callable[[Instance], Awaitable[None]]
"""Gives an instance the adapters that were loaded or unloaded since this was made."""
_Placed = tuple[InstancePlacement, Slot]
_STOP_SECONDS: Final = 30.0
_LEAST_STOP_SECONDS: Final = 1.0
_FALL_SECONDS: Final = 60.0
"""Seconds that an engine may take to fall asleep, unless its version is closed before: it copies its weights."""


class InstanceSleep:
    """The sleep of one version's instances. `makers` returns how to make those of the present configuration.

    `adapters` returns how instances that fall asleep now are to be brought up to date later. `timeout`: seconds that
    an instance may take to wake.
    """

    def __init__(
        self,
        name: str,
        instances: VersionInstances,
        dispatcher: Dispatcher,
        makers: Makers,
        adapters: Callable[[], UpdateAdapters],
        timeout: float,
    ) -> None:
        self.asleep = False
        self._name = name
        self._instances = instances
        self._dispatcher = dispatcher
        self._makers = makers
        self._adapters = adapters
        self._update_adapters: UpdateAdapters = _keep_adapters
        self._timeout = timeout
        self._sleepers: list[_Placed] = []
        self._falling: asyncio.Task[None] | None = None
        self._waking: asyncio.Task[None] | None = None
        self._limits: set[asyncio.Timeout] = set()
        self._deferred = 0
        self._closed = False

    @property
    def names(self) -> list[str]:
        """Names of the instances that are asleep and still loaded."""
        return [slot.instance.name for _, slot in self._sleepers if slot.death is None and slot.instance is not None]

    async def begin(self) -> None:
        """Put every instance to sleep, or release it. Do nothing while requests are open, or sleep is deferred."""
        if self.asleep or self._closed or self._deferred or self._dispatcher.has_open_requests:
            return
        if self._waking is not None or _goes_on(self._falling):
            return  # Instances of a former configuration still give way.
        self.asleep = True
        placed = self._instances.all
        self._instances.swap([], placed)
        self._update_adapters = self._adapters()
        work = [self._dispatcher.group.set_aside(slot, self._put_to_sleep) for _, slot in placed]
        self._falling = asyncio.get_running_loop().create_task(self._fall_asleep(placed, work))
        await asyncio.shield(self._falling)

    async def end(self) -> None:
        """Wake or load the instances. Raises ServingError; the requests that wait get it, too."""
        task = self.end_soon()
        if task is not None:
            await asyncio.shield(task)

    def end_soon(self) -> asyncio.Task[None] | None:
        """Begin to wake or load the instances, unless that is going on. Return the work; None if it does not sleep."""
        if self._closed or not self.asleep:
            return None
        if self._waking is None:
            self._waking = asyncio.get_running_loop().create_task(self._wake_up())
            self._waking.add_done_callback(_retrieved)
        return self._waking

    async def defer(self) -> None:
        """Wake the instances, and let them not sleep until `allow`. Those that cannot be woken stay asleep."""
        self._deferred += 1
        try:
            await self.end()
        except ServingError as error:
            _log.warning("model '%s' cannot be woken to be changed: %s", self._name, error.message)

    def allow(self) -> None:
        """End what `defer` began, also where that was interrupted."""
        self._deferred -= 1

    def replaced(self) -> None:
        """Note that a change of the configuration has loaded instances, which take the place of those that sleep."""
        if self.asleep and self._instances.all:
            self.asleep = False
            self._falling = asyncio.get_running_loop().create_task(self._give_way(self._falling))

    async def close(self, grace: float) -> None:
        """Release what sleeps, and load nothing any more; requests that wait for it are refused.

        Instances that have not fallen asleep are released at once. Each is killed after `grace` seconds, at least 1.
        """
        self._closed = True
        self._dispatcher.group.limit_stops(max(grace, _LEAST_STOP_SECONDS))
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0.0)
        if self._waking is not None:
            self._waking.cancel()
        tasks = [task for task in (self._falling, self._waking) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._discard()
        # Explicitly: these refer back to the version.
        self._makers, self._adapters, self._update_adapters = list, lambda: _keep_adapters, _keep_adapters
        if self.asleep:
            self._dispatcher.refuse_waiting(unavailable(f"model '{self._name}' was unloaded"))

    async def _fall_asleep(self, placed: Sequence[_Placed], work: Sequence[asyncio.Task[bool] | None]) -> None:
        """Wait until every instance is asleep or released."""
        falling = [(one, task) for one, task in zip(placed, work, strict=True) if task is not None]
        results = await asyncio.gather(*[task for _, task in falling], return_exceptions=True)
        self._sleepers = [one for (one, _), result in zip(falling, results, strict=True) if result is True]
        how = f"{len(self._sleepers)} of its {len(placed)} instances stay loaded"
        _log.info("model '%s' is asleep: %s", self._name, how)

    async def _put_to_sleep(self, instance: Instance) -> None:
        """Put one instance to sleep, unless its version is closed. Raises ServingError, also when it is late."""
        if self._closed:
            return
        limit = asyncio.timeout(_FALL_SECONDS)
        self._limits.add(limit)
        try:
            async with limit:
                await instance.manage(Sleep())
        except TimeoutError as overdue:
            raise unavailable(f"model instance '{instance.name}' did not fall asleep in time") from overdue
        finally:
            self._limits.discard(limit)

    async def _wake_up(self) -> None:
        try:
            if self._falling is not None:
                await asyncio.shield(self._falling)  # which `close` lets end
            placed = await self._woken() or await self._loaded()
        except asyncio.CancelledError:
            raise
        except Exception as cause:
            error = serving_error(cause)
            self._waking = None
            self._dispatcher.refuse_waiting(unavailable(f"model '{self._name}' cannot be woken: {error.message}"))
            raise error from cause
        slots = [slot for _, slot in placed]
        if self.asleep:
            self._instances.swap(placed, [])
            self._dispatcher.group.swap(slots, [])
        else:
            await self._dispatcher.group.discard(slots)
        self.asleep, self._waking = False, None

    async def _woken(self) -> list[_Placed]:
        """Wake what sleeps. Return it, with those that could not be woken or have died, which the group starts again.

        Return nothing if none could be woken.
        """
        awake = await asyncio.gather(*[self._rouse(slot) for _, slot in self._sleepers])
        if not any(awake):
            await self._discard()
            return []
        sleepers, self._sleepers = self._sleepers, []
        there = {placement for placement, _ in sleepers}
        missing = [(placement, _dead(maker)) for placement, maker in self._makers() if placement not in there]
        return [*sleepers, *missing]

    async def _rouse(self, slot: Slot) -> bool:
        """Wake one instance. Return whether it can serve; release it where it cannot."""
        instance = slot.instance
        if instance is None or slot.death is not None:
            return False
        try:
            await self._restore(instance)
        except Exception as cause:
            error = serving_error(cause)
            _log.error("model '%s': %s; it is loaded again", self._name, error.message)
            slot.death = slot.death or error
            await instance.stop(_STOP_SECONDS)
        return slot.death is None

    async def _restore(self, instance: Instance) -> None:
        """Wake an instance, and give it the adapters that were loaded or unloaded meanwhile. Raises ServingError."""
        try:
            async with asyncio.timeout(self._timeout):
                await instance.manage(Wake())
                await self._update_adapters(instance)
        except TimeoutError as overdue:
            text = f"model instance '{instance.name}' did not wake within {self._timeout:g} s"
            raise unavailable(text) from overdue

    async def _loaded(self) -> list[_Placed]:
        makers = self._makers()
        slots = await self._dispatcher.group.load([maker for _, maker in makers])
        return list(zip([placement for placement, _ in makers], slots, strict=True))

    async def _give_way(self, falling: asyncio.Task[None] | None) -> None:
        """Release what sleeps, once it does. What is being woken is released then."""
        if falling is not None:
            await falling
        if self._waking is None:
            await self._discard()

    async def _discard(self) -> None:
        sleepers, self._sleepers = self._sleepers, []
        await self._dispatcher.group.discard([slot for _, slot in sleepers])


async def _keep_adapters(instance: Instance) -> None:
    """Change no adapter."""


def _goes_on(task: asyncio.Task[None] | None) -> bool:
    return task is not None and not task.done()


def _dead(maker: NewInstance) -> Slot:
    """Return the slot of an instance that was released when the others fell asleep: the group loads it."""
    slot = Slot(maker)
    slot.death = unavailable("it was released")
    return slot


def _retrieved(task: asyncio.Task[None]) -> None:
    """Retrieve a failure that only the waiting requests were told."""
    if not task.cancelled():
        task.exception()
