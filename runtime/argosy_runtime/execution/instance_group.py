"""The instances of one model version: which are free, and how lost ones come back."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from argosy_runtime.errors import ServingError

from .instance import Instance

_log = logging.getLogger("argosy.execution")

OnDeath = Callable[[Instance, ServingError], None]
NewInstance = Callable[[OnDeath], Instance]

_FIRST_RETRY_SECONDS = 0.2
_LAST_RETRY_SECONDS = 30.0


class InstanceGroup:
    """Instances, each made anew by its maker when it is lost, with a growing pause between attempts.

    `on_return` is called when an instance is free again after a loss; `on_end` when none is left and a first attempt to
    bring one back has failed.
    """

    def __init__(
        self, makers: Sequence[NewInstance], on_return: Callable[[], None], on_end: Callable[[], None]
    ) -> None:
        self._makers = list(makers)
        self._on_return = on_return
        self._on_end = on_end
        self._made: list[Instance] = []
        self._alive: dict[Instance, NewInstance] = {}
        self._revivals: set[asyncio.Task[None]] = set()
        self._closing = False
        self.idle: list[Instance] = []
        self.lost: ServingError | None = None

    async def start(self) -> None:
        """Load every instance, all at once, and raise the first failure; `stop` ends those that loaded."""
        self._made = [make(self._on_death) for make in self._makers]
        loads = [self._load(instance, make) for instance, make in zip(self._made, self._makers, strict=True)]
        results = await asyncio.gather(*loads, return_exceptions=True)
        for failure in results:
            if failure is not None:
                raise failure
        # One that died since it had loaded is on its way back, or back.
        self.idle += [instance for instance in self._made if instance in self._alive and instance not in self.idle]

    async def _load(self, instance: Instance, make: NewInstance) -> None:
        await instance.start()
        self._alive[instance] = make

    @property
    def still_loading(self) -> bool:
        """Whether an instance whose load was given up loads all the same."""
        return any(instance.still_loading for instance in self._made)

    def take(self) -> Instance:
        """The instance that has been free the longest."""
        return self.idle.pop(0)

    def give_back(self, instance: Instance) -> None:
        """It is through with its batch; one that was lost meanwhile is not taken back."""
        if instance in self._alive:
            self.idle.append(instance)

    async def stop(self, grace: float) -> None:
        """Release every instance; those that take longer than `grace` seconds are ended."""
        self._closing = True
        for task in self._revivals:
            task.cancel()
        await asyncio.gather(*self._revivals, return_exceptions=True)
        await asyncio.gather(*(instance.stop(grace) for instance in self._alive))

    def _on_death(self, instance: Instance, error: ServingError) -> None:
        make = self._alive.pop(instance)
        if instance in self.idle:
            self.idle.remove(instance)
        _log.error("%s", error.message)
        if not self._closing:
            task = asyncio.get_running_loop().create_task(self._revive(make))
            self._revivals.add(task)
            task.add_done_callback(self._revivals.discard)

    async def _revive(self, make: NewInstance) -> None:
        delay = _FIRST_RETRY_SECONDS
        while True:
            await asyncio.sleep(delay)
            instance = make(self._on_death)
            try:
                await instance.start()
            except ServingError as error:
                delay = min(2 * delay, _LAST_RETRY_SECONDS)
                _log.error("%s; trying again in %g s", error.message, delay)
                if not self._alive:
                    self.lost = error
                    self._on_end()
                continue
            self._alive[instance] = make
            self.idle.append(instance)
            self.lost = None
            self._on_return()
            return
