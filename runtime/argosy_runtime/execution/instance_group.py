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
_STOP_SECONDS = 30.0
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
        self._alive: dict[Instance, NewInstance] = {}
        self._revivals: set[asyncio.Task[None]] = set()
        self._closing = False
        self.idle: list[Instance] = []
        self.lost: ServingError | None = None

    async def start(self) -> None:
        """Load every instance, all at once; the first failure ends those that loaded and is raised."""
        instances = [(make(self._on_death), make) for make in self._makers]
        results = await asyncio.gather(*(instance.start() for instance, _ in instances), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures:
            started = [one for (one, _), result in zip(instances, results, strict=True) if result is None]
            await asyncio.gather(*(instance.stop(_STOP_SECONDS) for instance in started))
            raise failures[0]
        self._alive = dict(instances)
        self.idle = [instance for instance, _ in instances]

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
