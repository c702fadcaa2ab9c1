"""The instances of one model version: loaded, warmed up, restarted when they are lost, and changed in number."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from argosy_common import device_errors
from argosy_common.crash_loops import LAST_PAUSE_S, LOOP_AFTER, on_trial, pause_s, resting
from argosy_runtime.backends.engines.commands import Command
from argosy_runtime.errors import ErrorKind, ServingError, internal, unavailable
from argosy_runtime.messages import InferResponse

from .clock import Clock, sleep
from .instance import NO_LISTENER, GroupListener, Instance
from .warm_up import WarmUp

_log = logging.getLogger("argosy.execution")

OnDeath = Callable[[Instance, ServingError], None]
NewInstance = Callable[[OnDeath], Instance]
Work = Callable[[Instance], Awaitable[None]]
"""What is done with a loaded instance. Raises ServingError."""

_STOP_SECONDS = 30.0


class Slot:
    """A slot of the group: the factory of its instances, and the present one. Its number is 0 until it is ready.

    `row`: number of instances in a row that ended here without an answer.
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
    """Instances, each made again by its factory when it is lost, with a growing pause between attempts.

    None is ready before it is warm. `lost` is the reason why none is left, None while one is ready or may be soon.
    Their number can change while they serve: `load` some, then `swap`. `on_trial`: by number, restarted instances
    that have not answered yet. `_broken`: instances that end because of a device error, and take no more batches.
    `_bound`: instances that are to leave, and take batches until `unbind`.
    """

    def __init__(self, makers: Sequence[NewInstance], listener: GroupListener, clock: Clock) -> None:
        self._slots = [Slot(make) for make in makers]
        self._listener: GroupListener = listener
        self._clock = clock
        self._warm_up: WarmUp | None = None
        self._ready: dict[int, Instance] = {}
        self._broken: dict[int, Instance] = {}
        self._bound: dict[int, Instance] = {}
        self._numbers = 0
        self._revivals: set[asyncio.Task[None]] = set()
        self._coming: list[Slot] = []
        self._leaving: dict[asyncio.Task[bool], asyncio.Future[None]] = {}
        self._grace = _STOP_SECONDS
        self._closing = False
        self.lost: ServingError | None = None
        # What each instance needs between its load and its first batch.
        self.prepare: Work | None = None
        self.on_trial: dict[int, Slot] = {}

    @property
    def names(self) -> list[str]:
        """Names of the ready instances."""
        return [instance.name for instance in self._ready.values()]

    @property
    def ready_instances(self) -> list[Instance]:
        """The instances that take batches."""
        return list(self._ready.values())

    @property
    def pids(self) -> list[int]:
        """Processes of the instances, of those that are asleep as well."""
        return [slot.instance.pid for slot in self._slots if slot.instance is not None and slot.instance.pid]

    @property
    def takes_batches(self) -> bool:
        """True if an instance is ready."""
        return bool(self._ready)

    def has(self, number: int) -> bool:
        """Return whether an instance takes batches."""
        return number in self._ready or number in self._bound

    def instance(self, number: int) -> Instance:
        """Return an instance that takes batches by its number."""
        ready = self._ready.get(number)
        return self._bound[number] if ready is None else ready

    def _abandon(self, number: int) -> None:
        """Send no more batches to an instance that is to leave, though it is needed: it cannot work any more."""
        self.unbind(number)
        self._listener.instance_retired(number)

    def unbind(self, number: int) -> None:
        """Send no more batches to an instance that is to leave."""
        instance = self._bound.pop(number, None)
        if instance is not None:
            instance.unbind()

    @property
    def slots(self) -> Sequence[Slot]:
        """The present slots: the original ones in their order, then added ones."""
        return tuple(self._slots)

    def ready(self, slot: Slot) -> bool:
        """Return whether the slot's instance takes batches: it is not loading, lost or being restarted."""
        return slot.number in self._ready

    def answered(self, number: int, responses: Sequence[InferResponse]) -> None:
        """Note an instance's answers: any but errors end the row of failures of an instance on trial.

        An error may be the last message of a process.
        """
        if not any(response.error is None for response in responses):
            return
        slot = self.on_trial.pop(number, None)
        if slot is not None:
            slot.row = 0

    def failed(self, number: int, error: ServingError) -> None:
        """Note an error of an instance's batch. After a device error the instance is replaced.

        It takes no more batches from now on, and ends once the answers are delivered.
        """
        instance = self._ready.get(number) if error.device_error else None
        if error.device_error and number in self._bound:
            self._abandon(number)
        if instance is None or instance.on_cpu:
            return
        self._broken[number] = self._ready.pop(number)
        self._listener.instance_retired(number)
        asyncio.get_running_loop().call_soon(instance.give_up, error.device_error)

    @property
    def caution(self) -> str:
        """Reason why the ready instances may not last, "" where one of them has answered or no crash loop is known.

        Without ready ones, those that end because of a device error stand for them until they have ended.
        """
        present = self._ready or self._broken
        if not present or not present.keys() <= self.on_trial.keys():
            return ""
        least = min([self.on_trial[number].row for number in present])
        return on_trial(least) if least >= LOOP_AFTER else ""

    async def start(self, warm_up: WarmUp) -> None:
        """Load and warm up every instance, all at once; the first failure ends all of them and is raised.

        An instance that is lost while others still load is restarted like a later one.
        """
        self._warm_up = warm_up
        try:
            results = await asyncio.gather(*[self._bring_up(slot) for slot in self._slots], return_exceptions=True)
            for result in results:
                if result is not None:
                    raise result
            return
        except BaseException as error:
            failure = error
        await self.stop(_STOP_SECONDS)
        raise failure

    async def manage(self, command: Command) -> None:
        """Have every ready instance carry out a command. Raises the first ServingError, once all have ended."""
        instances = list(self._ready.values())
        results = await asyncio.gather(*[one.manage(command) for one in instances], return_exceptions=True)
        for result in results:
            if result is not None:
                raise result

    async def stop(self, grace: float) -> None:
        """Release every instance; those that take longer than `grace` seconds are killed."""
        self._closing = True
        self._grace = grace
        for task in self._revivals:
            task.cancel()
        for idle in self._leaving.values():
            if not idle.done():
                idle.set_result(None)
        await asyncio.gather(*self._revivals, return_exceptions=True)
        instances = [*self._ready.values(), *self._broken.values()]
        await asyncio.gather(*[instance.stop(grace) for instance in instances], *map(asyncio.shield, self._leaving))
        self._let_go()

    def _let_go(self) -> None:
        """Break the reference cycles of instances, group and listener, so that all of it is freed at once."""
        self._ready.clear()
        self._broken.clear()
        self._bound.clear()
        for slot in self._slots:
            slot.instance = None
        self._listener = NO_LISTENER

    async def load(self, makers: Sequence[NewInstance]) -> list[Slot]:
        """Load and warm up further instances, all at once, which take no batch yet: `swap` or `discard` them.

        The first failure ends all of them and is raised; the serving ones go on.
        """
        slots = [Slot(make) for make in makers]
        self._coming += slots
        tasks = [asyncio.get_running_loop().create_task(self._load(slot)) for slot in slots]
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
            for task in tasks:
                task.result()
            return slots
        except BaseException as error:
            failure = error
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await self.discard([slot for slot, result in zip(slots, results, strict=True) if result is None])
        self._coming = [slot for slot in self._coming if slot not in slots]
        raise failure

    async def discard(self, slots: Sequence[Slot]) -> None:
        """Release instances that were loaded and will not serve."""
        self._coming = [slot for slot in self._coming if slot not in slots]
        stops = [slot.instance.stop(self._grace) for slot in slots if slot.instance is not None]
        await asyncio.gather(*stops)
        for slot in slots:
            slot.instance = None

    def limit_stops(self, grace: float) -> None:
        """Let instances that are released from now on be killed after so many seconds."""
        self._grace = grace

    def set_aside(self, slot: Slot, work: Work) -> asyncio.Task[bool] | None:
        """Send no batches to a slot, and have its instance do this work once it is idle. Return None without one.

        The task's result is True if the instance is still loaded then: `swap` or `discard` its slot. It is released
        where the work raises.
        """
        return self._withdraw(slot, work)

    def swap(self, added: Sequence[Slot], removed: Sequence[Slot]) -> list[asyncio.Task[bool]]:
        """Send batches to added slots, and none to removed ones, which finish what they run and are released.

        Return the tasks that are done when each of those is released.
        """
        self._coming = [slot for slot in self._coming if slot not in added]
        for slot in added:
            self._slots.append(slot)
            if slot.death is None:
                self._announce(slot)
            else:
                self._begin_revival(slot)
        return [task for slot in removed if (task := self._withdraw(slot, None)) is not None]

    def _withdraw(self, slot: Slot, work: Work | None) -> asyncio.Task[bool] | None:
        """Send no more batches to a slot. Return the task of its instance's work or release; None without one."""
        self._slots.remove(slot)
        if slot.revival is not None:
            slot.revival.cancel()
        instance = self._ready.pop(slot.number, None) or self._broken.pop(slot.number, None)
        self.on_trial.pop(slot.number, None)
        if instance is None:
            return None
        if not self._listener.instance_leaves(slot.number):
            self._bound[slot.number] = instance
            instance.bound = True
        idle = instance.idle()
        if work is not None:
            self._coming.append(slot)
        leaving = self._release(instance, idle) if work is None else self._work(slot, instance, idle, work)
        task = asyncio.get_running_loop().create_task(leaving)
        self._leaving[task] = idle
        task.add_done_callback(self._leaving.pop)
        return task

    async def _work(self, slot: Slot, instance: Instance, idle: "asyncio.Future[None]", work: Work) -> bool:
        """Do this work with an instance once it is idle. Return whether it is still loaded."""
        await idle
        try:
            if not self._closing:
                await work(instance)
            if not self._closing and slot.death is None:
                return True
        except ServingError as error:
            if error.kind is not ErrorKind.UNSUPPORTED:
                _log.warning("%s; it is released", error.message)
        except Exception:
            _log.exception("model instance '%s' is released", instance.name)
        self._coming.remove(slot)
        return await self._release(instance, idle)

    async def _release(self, instance: Instance, idle: "asyncio.Future[None]") -> bool:
        """Release an instance once it is idle. Return False."""
        await idle
        try:
            await instance.stop(self._grace)
        except Exception:
            _log.exception("model instance '%s' could not be released", instance.name)
        return False

    async def _bring_up(self, slot: Slot) -> None:
        await self._load(slot)
        self._announce(slot)

    async def _load(self, slot: Slot) -> None:
        slot.number, slot.death = 0, None
        slot.instance = instance = slot.make(self._on_death)
        try:
            await instance.start()
            if self.prepare is not None:
                await self.prepare(instance)
            await self._make_warm(slot, instance)
        except ServingError as error:
            if not instance.on_cpu:
                error.message = device_errors.signed(error.message, error.device_error)
            raise

    async def _make_warm(self, slot: Slot, instance: Instance) -> None:
        try:
            if self._warm_up is not None:
                await self._warm_up.run(instance)
            if slot.death is not None:
                raise slot.death
            return
        except BaseException as error:
            failure = error
        await instance.stop(_STOP_SECONDS)
        raise failure

    def _announce(self, slot: Slot) -> None:
        assert slot.instance is not None
        self._numbers += 1
        slot.number = self._numbers
        self._ready[slot.number] = slot.instance
        if slot.row:
            self.on_trial[slot.number] = slot
        self.lost = None
        self._listener.instance_added(slot.number)

    def _on_death(self, instance: Instance, error: ServingError) -> None:
        _log.error("%s", error.message)
        slots = [slot for slot in [*self._slots, *self._coming] if slot.instance is instance]
        slot = slots[0] if slots else None
        if slot is None:
            for number in [number for number, bound in self._bound.items() if bound is instance]:
                self._abandon(number)
            return
        slot.death = error
        if (self._ready.pop(slot.number, None) or self._broken.pop(slot.number, None)) is None:
            return  # It was not ready yet: its load fails by itself.
        self.on_trial.pop(slot.number, None)
        slot.row += 1
        self._listener.instance_died(slot.number)
        if not self._closing:
            self._begin_revival(slot)
            if slot.row >= LOOP_AFTER and not self._ready:
                self._lose(unavailable(resting(slot.row, device_errors.signed(error.message, error.device_error))))

    def _lose(self, error: ServingError) -> None:
        self.lost = error
        self._listener.instances_lost()

    def _begin_revival(self, slot: Slot) -> None:
        slot.revival = task = asyncio.get_running_loop().create_task(self._revive(slot))
        self._revivals.add(task)
        task.add_done_callback(self._revivals.discard)

    async def _revive(self, slot: Slot) -> None:
        delay = pause_s(max(1, slot.row))
        while True:
            await sleep(self._clock, delay)
            try:
                await self._bring_up(slot)
            except Exception as problem:
                error = problem if isinstance(problem, ServingError) else internal(f"cannot restart: {problem!r}")
                delay = min(2 * delay, LAST_PAUSE_S)
                _log.error("%s; trying again in %g s", error.message, delay)
                if not self._ready:
                    self._lose(error)
                continue
            return
