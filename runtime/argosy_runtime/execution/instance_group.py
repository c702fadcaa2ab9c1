"""The instances of one model version: loaded, warmed up, brought back when they are lost; more or fewer of them."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from argosy_common import device_errors
from argosy_common.crash_loops import LAST_PAUSE_S, LOOP_AFTER, on_trial, pause_s, resting
from argosy_runtime.errors import ServingError, internal, unavailable
from argosy_runtime.messages import InferResponse

from .clock import Clock, sleep
from .instance import Instance
from .warm_up import WarmUp

_log = logging.getLogger("argosy.execution")

OnDeath = Callable[[Instance, ServingError], None]
NewInstance = Callable[[OnDeath], Instance]

_STOP_SECONDS = 30.0


class GroupListener(Protocol):
    """Who hears of a group's instances, each known by a number of its own."""

    def instance_added(self, number: int) -> None:
        """An instance is loaded and warm."""

    def instance_died(self, number: int) -> None:
        """It is no more."""

    def instance_retired(self, number: int) -> None:
        """It takes no more batches; what it runs it finishes."""

    def instances_lost(self) -> None:
        """None is left, and an attempt to bring one back has failed, or none would live long."""


class _Nobody:
    """Stands for the listener of a group that has stopped."""

    def instance_added(self, number: int) -> None:
        """See `GroupListener`, as for all below."""

    def instance_died(self, number: int) -> None:
        """It has been told before."""

    def instance_retired(self, number: int) -> None:
        """Nothing is left to retire."""

    def instances_lost(self) -> None:
        """Nothing is left to lose."""


_NOBODY = _Nobody()


class Place:
    """A place in the group: its maker, and the instance that stands there. Its number is 0 until it is ready.

    `row`: how many instances in a row ended here without an answer.
    """

    __slots__ = ("death", "instance", "make", "number", "revival", "row")

    def __init__(self, make: NewInstance) -> None:
        self.make = make
        self.instance: Instance | None = None
        self.number = 0
        self.death: ServingError | None = None
        self.revival: asyncio.Task[None] | None = None
        self.row = 0


class InstanceGroup:
    """Instances, each made anew by its maker when it is lost, with a growing pause between attempts.

    None is ready before it is warm. `lost` is why none is left, None while one is or may come soon. How many there are
    changes while they serve: `load` some, then `exchange`. `on_trial`: by number those that came back and have not
    answered yet.
    """

    def __init__(self, makers: Sequence[NewInstance], listener: GroupListener, clock: Clock) -> None:
        self._places = [Place(make) for make in makers]
        self._listener: GroupListener = listener
        self._clock = clock
        self._warm_up: WarmUp | None = None
        self._ready: dict[int, Instance] = {}
        self._numbers = 0
        self._revivals: set[asyncio.Task[None]] = set()
        self._coming: list[Place] = []
        self._leaving: dict[asyncio.Task[None], asyncio.Future[None]] = {}
        self._grace = _STOP_SECONDS
        self._closing = False
        self.lost: ServingError | None = None
        self.on_trial: dict[int, Place] = {}

    @property
    def names(self) -> list[str]:
        """Those that are ready."""
        return [instance.name for instance in self._ready.values()]

    def has(self, number: int) -> bool:
        """Return whether this instance is ready still."""
        return number in self._ready

    def instance(self, number: int) -> Instance:
        """Return a ready instance by its number."""
        return self._ready[number]

    @property
    def places(self) -> Sequence[Place]:
        """Those that there are now: first those that it was made with, in their order, then what came."""
        return tuple(self._places)

    def ready(self, place: Place) -> bool:
        """Return whether what stands there takes batches: it is not loading, lost or on its way back."""
        return place.number in self._ready

    def answered(self, number: int, responses: Sequence[InferResponse]) -> None:
        """Note what an instance has answered: but for errors, the row of ends at the place of one on trial is over.

        An error may be its last word.
        """
        if not any(response.error is None for response in responses):
            return
        place = self.on_trial.pop(number, None)
        if place is not None:
            place.row = 0

    def failed(self, number: int, error: ServingError) -> None:
        """Note an error that an instance has answered with: after one of its GPU nothing works there any more, so that
        it is replaced once the answers are out.
        """
        instance = self._ready.get(number) if error.device_error else None
        if instance is not None and not instance.on_cpu:
            asyncio.get_running_loop().call_soon(instance.give_up, error.device_error)

    @property
    def caution(self) -> str:
        """Why those that are ready may not last, "" where one of them has answered or no crash loop is known."""
        if not self.on_trial or len(self.on_trial) < len(self._ready):
            return ""
        least = min([place.row for place in self.on_trial.values()])
        return on_trial(least) if least >= LOOP_AFTER else ""

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
        self._grace = grace
        for task in self._revivals:
            task.cancel()
        for idle in self._leaving.values():
            if not idle.done():
                idle.set_result(None)
        await asyncio.gather(*self._revivals, return_exceptions=True)
        await asyncio.gather(*[instance.stop(grace) for instance in self._ready.values()], *self._leaving)
        self._let_go()

    def _let_go(self) -> None:
        """What is released leads back here, and this to its listener: without the circles all of it goes at once."""
        self._ready.clear()
        for place in self._places:
            place.instance = None
        self._listener = _NOBODY

    async def load(self, makers: Sequence[NewInstance]) -> list[Place]:
        """Load and warm up further instances, all at once, which take no batch yet: `exchange` or `discard` them.

        The first failure ends all of them and is raised; those that serve go on.
        """
        places = [Place(make) for make in makers]
        self._coming += places
        tasks = [asyncio.get_running_loop().create_task(self._load(place)) for place in places]
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
            for task in tasks:
                task.result()
        except BaseException:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            await self.discard([place for place, result in zip(places, results, strict=True) if result is None])
            self._coming = [place for place in self._coming if place not in places]
            raise
        return places

    async def discard(self, places: Sequence[Place]) -> None:
        """Release what was loaded and is not to serve."""
        self._coming = [place for place in self._coming if place not in places]
        stops = [place.instance.stop(_STOP_SECONDS) for place in places if place.instance is not None]
        await asyncio.gather(*stops)
        for place in places:
            place.instance = None

    def exchange(self, added: Sequence[Place], removed: Sequence[Place]) -> list[asyncio.Task[None]]:
        """From now on batches go to these too, and no more to those, which finish what they run and are released.

        Returns what is done when each of those is.
        """
        self._coming = [place for place in self._coming if place not in added]
        for place in added:
            self._places.append(place)
            if place.death is None:
                self._announce(place)
            else:
                self._begin_revival(place)
        return [task for place in removed if (task := self._retire(place)) is not None]

    def _retire(self, place: Place) -> asyncio.Task[None] | None:
        self._places.remove(place)
        if place.revival is not None:
            place.revival.cancel()
        instance = self._ready.pop(place.number, None)
        self.on_trial.pop(place.number, None)
        if instance is None:
            return None
        self._listener.instance_retired(place.number)
        idle = instance.idle()
        task = asyncio.get_running_loop().create_task(self._release(instance, idle))
        self._leaving[task] = idle
        task.add_done_callback(self._leaving.pop)
        return task

    async def _release(self, instance: Instance, idle: "asyncio.Future[None]") -> None:
        await idle
        try:
            await instance.stop(self._grace)
        except Exception:
            _log.exception("model instance '%s' could not be released", instance.name)

    async def _bring_up(self, place: Place) -> None:
        await self._load(place)
        self._announce(place)

    async def _load(self, place: Place) -> None:
        place.number, place.death = 0, None
        place.instance = instance = place.make(self._on_death)
        try:
            await instance.start()
            await self._make_warm(place, instance)
        except ServingError as error:
            if not instance.on_cpu:
                error.message = device_errors.signed(error.message, error.device_error)
            raise

    async def _make_warm(self, place: Place, instance: Instance) -> None:
        try:
            if self._warm_up is not None:
                await self._warm_up.run(instance)
            if place.death is not None:
                raise place.death
        except BaseException:
            await instance.stop(_STOP_SECONDS)
            raise

    def _announce(self, place: Place) -> None:
        assert place.instance is not None
        self._numbers += 1
        place.number = self._numbers
        self._ready[place.number] = place.instance
        if place.row:
            self.on_trial[place.number] = place
        self.lost = None
        self._listener.instance_added(place.number)

    def _on_death(self, instance: Instance, error: ServingError) -> None:
        _log.error("%s", error.message)
        places = [place for place in [*self._places, *self._coming] if place.instance is instance]
        place = places[0] if places else None
        if place is None:
            return
        place.death = error
        if self._ready.pop(place.number, None) is None:
            return  # It was not ready yet: who brings it up will see.
        self.on_trial.pop(place.number, None)
        place.row += 1
        self._listener.instance_died(place.number)
        if not self._closing:
            self._begin_revival(place)
            if place.row >= LOOP_AFTER and not self._ready:
                self._lose(unavailable(resting(place.row, device_errors.signed(error.message, error.device_error))))

    def _lose(self, error: ServingError) -> None:
        self.lost = error
        self._listener.instances_lost()

    def _begin_revival(self, place: Place) -> None:
        place.revival = task = asyncio.get_running_loop().create_task(self._revive(place))
        self._revivals.add(task)
        task.add_done_callback(self._revivals.discard)

    async def _revive(self, place: Place) -> None:
        delay = pause_s(max(1, place.row))
        while True:
            await sleep(self._clock, delay)
            try:
                await self._bring_up(place)
            except Exception as problem:
                error = problem if isinstance(problem, ServingError) else internal(f"cannot restart: {problem!r}")
                delay = min(2 * delay, LAST_PAUSE_S)
                _log.error("%s; trying again in %g s", error.message, delay)
                if not self._ready:
                    self._lose(error)
                continue
            return
