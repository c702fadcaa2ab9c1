"""The instances of one model version: loaded, warmed up, and brought back when they are lost."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from argosy_runtime.errors import ServingError, internal

from .clock import Clock, sleep
from .instance import Instance
from .warm_up import WarmUp

_log = logging.getLogger("argosy.execution")

OnDeath = Callable[[Instance, ServingError], None]
NewInstance = Callable[[OnDeath], Instance]

_FIRST_RETRY_SECONDS = 0.2
_LAST_RETRY_SECONDS = 30.0
_STOP_SECONDS = 30.0


class GroupListener(Protocol):
    """Who hears of a group's instances, each known by a number of its own."""

    def instance_added(self, number: int) -> None:
        """An instance is loaded and warm."""

    def instance_died(self, number: int) -> None:
        """It is no more."""

    def instances_lost(self) -> None:
        """None is left, and a first attempt to bring one back has failed."""


class _Place:
    """A place in the group: its maker, and the instance that stands there. Its number is 0 until it is ready."""

    __slots__ = ("death", "instance", "make", "number")

    def __init__(self, make: NewInstance) -> None:
        self.make = make
        self.instance: Instance | None = None
        self.number = 0
        self.death: ServingError | None = None


class InstanceGroup:
    """Instances, each made anew by its maker when it is lost, with a growing pause between attempts.

    None is ready before it is warm. `lost` is why none is left, None while one is or may come.
    """

    def __init__(self, makers: Sequence[NewInstance], listener: GroupListener, clock: Clock) -> None:
        self._places = [_Place(make) for make in makers]
        self._listener = listener
        self._clock = clock
        self._warm_up: WarmUp | None = None
        self._ready: dict[int, Instance] = {}
        self._numbers = 0
        self._revivals: set[asyncio.Task[None]] = set()
        self._closing = False
        self.lost: ServingError | None = None

    def __len__(self) -> int:
        """How many are ready."""
        return len(self._ready)

    def has(self, number: int) -> bool:
        """Whether this instance is ready still."""
        return number in self._ready

    def instance(self, number: int) -> Instance:
        """A ready instance by its number."""
        return self._ready[number]

    async def start(self, warm_up: WarmUp) -> None:
        """Load and warm up every instance, all at once; the first failure ends all of them and is raised.

        One that is lost while others still load comes back as it would later.
        """
        self._warm_up = warm_up
        try:
            results = await asyncio.gather(*[self._bring_up(place) for place in self._places], return_exceptions=True)
            for result in results:
                if result is not None:
                    raise result
        except BaseException:
            await self.stop(_STOP_SECONDS)
            raise

    async def stop(self, grace: float) -> None:
        """Release every instance; those that take longer than `grace` seconds are ended."""
        self._closing = True
        for task in self._revivals:
            task.cancel()
        await asyncio.gather(*self._revivals, return_exceptions=True)
        await asyncio.gather(*[instance.stop(grace) for instance in self._ready.values()])

    async def _bring_up(self, place: _Place) -> None:
        place.number, place.death = 0, None
        place.instance = instance = place.make(self._on_death)
        await instance.start()
        try:
            if self._warm_up is not None:
                await self._warm_up.run(instance)
            if place.death is not None:
                raise place.death
        except BaseException:
            await instance.stop(_STOP_SECONDS)
            raise
        self._numbers += 1
        place.number = self._numbers
        self._ready[place.number] = instance
        self.lost = None
        self._listener.instance_added(place.number)

    def _on_death(self, instance: Instance, error: ServingError) -> None:
        _log.error("%s", error.message)
        place = next((place for place in self._places if place.instance is instance), None)
        if place is None:
            return
        place.death = error
        if self._ready.pop(place.number, None) is None:
            return  # It was not ready yet: who brings it up will see.
        self._listener.instance_died(place.number)
        if not self._closing:
            task = asyncio.get_running_loop().create_task(self._revive(place))
            self._revivals.add(task)
            task.add_done_callback(self._revivals.discard)

    async def _revive(self, place: _Place) -> None:
        delay = _FIRST_RETRY_SECONDS
        while True:
            await sleep(self._clock, delay)
            try:
                await self._bring_up(place)
            except Exception as problem:
                error = problem if isinstance(problem, ServingError) else internal(f"cannot restart: {problem!r}")
                delay = min(2 * delay, _LAST_RETRY_SECONDS)
                _log.error("%s; trying again in %g s", error.message, delay)
                if not self._ready:
                    self.lost = error
                    self._listener.instances_lost()
                continue
            return
