"""Loads that requests cause, and the models that give way to them.

A load needs memory: what its model was measured to use when it was loaded last, or else the size of its files. Where
that exceeds the limit, models give way (`eviction`); where none can, the load waits for open requests to end, for as
long as a request may wait.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from time import time_ns
from typing import Final

from argosy_common.quantity import format_bytes
from argosy_runtime.errors import ErrorKind, ServingError, unavailable
from argosy_runtime.execution.clock import Clock, LoopClock, sleep
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.repository.options import OnDemandOptions
from argosy_runtime.repository.records import ModelRecord
from argosy_runtime.repository.registry import Registry
from argosy_runtime.repository.work import serving_error
from argosy_runtime.telemetry.machine.memory import ModelMemory

from .eviction import Resident, evictions
from .waiting import Enter, Waiters, WaitingRequest, Wake

_log = logging.getLogger("argosy.ondemand")

_RETRY_SECONDS: Final = 0.05
_REST_NS: Final = 5_000_000_000
"""How long a model that could not be loaded is not tried again."""
_MS: Final = 1_000_000

Measure = Callable[[str], Awaitable[int]]
"""Returns the bytes that a loaded model uses now; 0 where that cannot be measured."""


class OnDemandLoads:
    """Models are loaded when a request names them. All methods run on the event loop; `now_ms` is the wall clock's."""

    def __init__(
        self,
        registry: Registry,
        options: OnDemandOptions,
        clock: Clock,
        now_ms: Callable[[], int],
        measure: Measure,
    ) -> None:
        self.limit = options.memory_limit
        self.waiters = Waiters(clock, round(options.wait_seconds * 1e9))
        self.loads: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.evictions: Counter[str] = Counter()
        self._registry = registry
        self._patience = options.wait_seconds
        self._clock = clock
        self._now_ms = now_ms
        self._measure = measure
        self._loading: set[str] = set()
        self._reserved: dict[str, dict[str, int]] = {}
        self._held: dict[str, frozenset[str]] = {}
        self._sizes: dict[str, int] = {}
        self._loaded_ms: dict[str, int] = {}
        self._failed: dict[str, tuple[int, ServingError]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def may_load(self, name: str) -> bool:
        """Return whether a request for a model that is not loaded would load it, as far as is known."""
        return name in self._registry.repositories.last_names and self._recent_failure(name) is None

    def submit(self, request: InferRequest, deliver: Deliver, enter: Enter, refusal: ServingError) -> Submission:
        """Have a request wait until its model serves, and `enter` then.

        Raises ServingError: `refusal`, why it was not routed, where no load would help.
        """
        self._begin(request.model_name, refusal)
        waiting = WaitingRequest(request, deliver, enter)
        waiting.wait(self.waiters)
        return waiting

    def when_loaded(self, name: str, version: str, then: Wake) -> bool:
        """Load a model, and call back once it serves, or cannot. False: it serves, or no load helps."""
        refusal = self._refusal(name, version)
        if refusal is None:
            return False
        try:
            self._begin(name, refusal)
            self.waiters.add(name, then)
        except ServingError:
            return False
        return True

    async def demand(self, name: str, version: str) -> None:
        """Load a model unless it serves, and wait until it does. Raises ServingError where it does not.

        One that is unloaded before the wait is over is loaded again, for as long as a request may wait.
        """
        end = self._clock.now() + round(self._patience * 1e9)
        refusal = self._refusal(name, version)
        while refusal is not None:
            self._begin(name, refusal)
            await self._served(name, max(1, end - self._clock.now()))
            if self._serves(name):
                return
            refusal = self._refusal(name, version)

    async def _served(self, name: str, limit: int) -> None:
        """Wait until a model's load is over, at most `limit` nanoseconds. Raises ServingError where it failed."""
        served: asyncio.Future[ServingError | None] = asyncio.get_running_loop().create_future()

        def wake(error: ServingError | None) -> None:
            # The wait may have been cancelled just now.
            if not served.done():
                served.set_result(error)

        waiter = self.waiters.add(name, wake, limit)
        try:
            error = await served
        except asyncio.CancelledError:
            self.waiters.leave(waiter)
            raise
        if error is not None:
            raise error

    def close(self) -> None:
        """Refuse those that wait. Loads go on, and end with the registry."""
        self.waiters.close(unavailable("Server is stopping, models are not loaded any more"))

    @property
    def used(self) -> int:
        """Bytes that the loaded models use, and those that are being loaded."""
        return sum(resident.size for resident in self._residents()) + self._reservations

    def _refusal(self, name: str, version: str) -> ServingError | None:
        """Return why a version does not answer; None where it does."""
        try:
            self._registry.find(name, version)
        except ServingError as refusal:
            return refusal
        return None

    def _begin(self, name: str, refusal: ServingError) -> None:
        """Start to load a model unless it is being loaded. Raises ServingError where it failed just now."""
        if refusal.kind is not ErrorKind.NOT_FOUND:
            raise refusal
        failure = self._recent_failure(name)
        if failure is not None:
            raise failure
        if name not in self._loading:
            self._loading.add(name)
            task = asyncio.get_running_loop().create_task(self._load(name, refusal))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _recent_failure(self, name: str) -> ServingError | None:
        until, error = self._failed.get(name, (0, None))
        if error is not None and self._clock.now() >= until:
            del self._failed[name]
            return None
        return error

    async def _load(self, name: str, refusal: ServingError) -> None:
        error: ServingError | None = None
        try:
            if name not in await self._registry.repositories.names() or not await self._load_within_limit(name):
                error = refusal
        except Exception as cause:
            error = serving_error(cause)
            self.failures[name] += 1
            if name in self._registry.repositories.last_names:
                self._failed[name] = (self._clock.now() + _REST_NS, error)
            _log.error("cannot load '%s' on demand: %s", name, error.message)
        finally:
            self._loading.discard(name)
            self._release(name)
            if error is None and not self._serves(name) and self.waiters.wait_for(name):
                # It was unloaded since, and is demanded again.
                self._begin(name, refusal)
            else:
                self.waiters.wake(name, error)

    async def _load_within_limit(self, name: str) -> bool:
        """Load a model. Return False where it does not serve for all that: an ensemble whose steps do not."""
        folders, steps = await self._registry.not_loaded(name)
        sizes = {folder.name: self._sizes.get(folder.name, folder.size) for folder in folders}
        await self._reserve(name, sizes, steps)
        await self._registry.load(name, None, {}, on_demand=True)
        self.loads[name] += 1
        serves = self._serves(name)
        for folder in folders:
            self._sizes[folder.name] = await self._measure(folder.name) or folder.size
            self._loaded_ms[folder.name] = self._now_ms()
        await self._evict(evictions(self._residents(), self._reservations, self._most) or [])
        return serves

    @property
    def _most(self) -> int:
        return self.limit or 2**63

    @property
    def _reservations(self) -> int:
        """Bytes for what is being loaded and does not serve yet: from then on it is a resident."""
        return sum(self._missing(sizes) for sizes in self._reserved.values())

    def _missing(self, sizes: Mapping[str, int]) -> int:
        return sum(size for name, size in sizes.items() if not self._serves(name))

    def _serves(self, name: str) -> bool:
        record = self._registry.records.get(name)
        return record is not None and record.serves

    def _is_held(self, name: str) -> bool:
        """Return whether a load that is not over needs a model: its own, or a step of its ensemble."""
        return any(name in held for held in self._held.values())

    def _release(self, name: str) -> None:
        self._reserved.pop(name, None)
        self._held.pop(name, None)

    async def _reserve(self, name: str, sizes: dict[str, int], steps: frozenset[str]) -> None:
        """Reserve memory for a model, and have others give way, but no `steps`, which it runs.

        Until its load is over, nothing of it gives way. Raises ServingError where it does not fit.
        """
        end = self._clock.now() + round(self._patience * 1e9)
        while True:
            needed = self._missing(sizes)
            residents = self._residents(keep=steps)
            victims = evictions(residents, needed + self._reservations, self._most)
            if victims is not None:
                self._reserved[name] = sizes
                self._held[name] = steps | sizes.keys()
                if await self._evict(victims):
                    return
                self._release(name)
            elif self._clock.now() >= end or not _may_fit(residents, needed, self._most, self._registry.records):
                raise self._does_not_fit(name, needed, residents)
            await sleep(self._clock, _RETRY_SECONDS)

    async def _evict(self, names: list[str]) -> bool:
        """Unload models, each unless it is in use by now. Return whether all are."""
        for name in names:
            if not await self._registry.evict(name, self._is_held):
                return False
            self.evictions[name] += 1
            _log.info("'%s' gives way, as it was used least recently", name)
        return True

    def _residents(self, keep: Collection[str] = ()) -> list[Resident]:
        records = [record for record in self._registry.records.values() if record.serves]
        return [self._resident(one, one.name not in keep and not self._is_held(one.name)) for one in records]

    def _resident(self, record: ModelRecord, evictable: bool) -> Resident:
        size = 0
        if not record.steps:
            size = self._sizes.get(record.name, record.folder.size if record.folder is not None else 0)
        used = max((served.statistics.last_inference_ms for served in record.in_service()), default=0)
        return Resident(
            record.name,
            size,
            max(used, self._loaded_ms.get(record.name, 0)),
            evictable and record.may_leave,
            record.steps,
        )

    def _does_not_fit(self, name: str, needed: int, residents: list[Resident]) -> ServingError:
        stay = sorted(resident.name for resident in residents if resident.size and not resident.evictable)
        why = f"; {', '.join(map(repr, stay))} cannot give way: loaded by name, or in use" if stay else ""
        return unavailable(
            f"model '{name}' is not loaded: it needs {format_bytes(needed)} bytes, and of the "
            f"{format_bytes(self.limit)} that --model-memory-limit allows {format_bytes(self.used)} are in use{why}"
        )


def loads_on_demand(registry: Registry, options: OnDemandOptions | None, memory: ModelMemory) -> OnDemandLoads | None:
    """Return the loads of a server; None where the options ask for none."""

    async def measure(model: str) -> int:
        await memory.measure(model)
        return memory.of_model(model)

    if options is None:
        return None
    return OnDemandLoads(registry, options, LoopClock(), lambda: time_ns() // _MS, measure)


def _may_fit(residents: list[Resident], needed: int, limit: int, records: Mapping[str, ModelRecord]) -> bool:
    """Return whether a model would fit if all requests that are open now had ended."""
    pinned = sum(resident.size for resident in residents if records[resident.name].requested)
    return pinned + needed <= limit
