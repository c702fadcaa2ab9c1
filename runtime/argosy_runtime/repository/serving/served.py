"""One version of one model in service: its instances, its queue, its counters."""

import asyncio
import logging
from collections.abc import Awaitable, Collection, Mapping, Sequence
from functools import partial
from time import monotonic

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError
from argosy_runtime.execution.calls.server import ServerCalls
from argosy_runtime.execution.clock import LoopClock
from argosy_runtime.execution.dispatching.dispatcher import Dispatcher
from argosy_runtime.execution.dispatching.limited_instances import LimitedInstances
from argosy_runtime.execution.dispatching.sequence_dispatcher import SequenceDispatcher
from argosy_runtime.execution.instance import Instance
from argosy_runtime.execution.instance_group import NewInstance, Slot
from argosy_runtime.messages import Deliver, InferRequest, Submission, Tensor
from argosy_runtime.modelconfig import InstancePlacement
from argosy_runtime.repository.folders.initial_states import initial_states
from argosy_runtime.repository.folders.layout import INITIAL_STATE_FOLDER, WARMUP_FOLDER
from argosy_runtime.repository.options import RepositoryOptions
from argosy_runtime.repository.preparing import Prepared, load_timeout
from argosy_runtime.scheduling.admission import Admission, Admitted
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.ordering import ResponseOrder
from argosy_runtime.scheduling.scheduler import Scheduler
from argosy_runtime.scheduling.sequences.scheduler import SequenceScheduler
from argosy_runtime.telemetry.machine.attribution import OnGpu

from . import warmup
from .adapter_table import NO_ADAPTERS, AdapterTable, LoadedAdapter
from .batching import delay_hooks
from .batching.strategies import load_strategy
from .instances import InstanceFactory, VersionInstances
from .reshaping import OutputShapes
from .sleeping import InstanceSleep, UpdateAdapters
from .version import Holds

_log = logging.getLogger("argosy.repository")


class ServedModel:
    """A version that a backend runs. `adapters` are those of all versions of the model, one after the other."""

    def __init__(
        self, prepared: Prepared, version: int, gpus: Mapping[int, str], calls: ServerCalls, options: RepositoryOptions
    ):
        self.name = prepared.config.name
        self.version = version
        self.config = prepared.config
        self.decoupled = bool(prepared.config.model_transaction_policy.decoupled)
        self.statistics = prepared.new_statistics()
        self.labels = prepared.labels
        self.folder = prepared.folder.path
        self._data_folder = partial(prepared.folder.data_folder, version)
        self._strategy = partial(load_strategy, prepared.config, prepared.folder, version)
        self._most = prepared.config.max_batch_size
        self._timeout = load_timeout(self.config, options)
        self._maker = InstanceFactory(
            prepared.folder,
            version,
            gpus,
            calls,
            self.statistics.engines,
            self._timeout,
            options.environment(self.config.backend),
            options.host_policies,
            options.requirements,
            options.gpu_limits,
        )
        self._admission = Admission(self.config)
        self._output_shapes = OutputShapes(self.config)
        self._holds = Holds()
        self.unready = ""
        rules = BatchingRules.of(self.config)
        self._order = ResponseOrder() if rules.preserve_ordering else None
        self._initial_states: dict[str, Tensor] = {}
        limiter = prepared.features.rate_limiter
        self._limited = LimitedInstances(limiter) if limiter is not None else None
        makers = self._makers()
        self._scheduler, self._dispatcher = self._scheduling([new for _, new in makers])
        if limiter is not None and self._limited is not None:
            self._dispatcher.limit(limiter, self._limited)
        self._instances = VersionInstances([slot for slot, _ in makers], self._dispatcher.group)
        self._cached = prepared.cached_answers(version, self.statistics, LoopClock())
        self.adapters = AdapterTable()
        self._dispatcher.group.prepare = self._add_adapters
        self._sleep = InstanceSleep(
            self.name, self._instances, self._dispatcher, self._makers, self._present_adapters, self._timeout
        )

    def _scheduling(self, makers: Sequence[NewInstance]) -> tuple[Scheduler, Dispatcher]:
        """Return the scheduler that the configuration asks for, with the dispatcher that it needs."""
        name, version, statistics, clock = self.name, self.version, self.statistics, LoopClock()
        if self.config.HasField("sequence_batching"):
            held = [delay_hooks.held_requests(hook) for hook in (delay_hooks.DYNAMIC, delay_hooks.BACKLOG)]
            sequences = SequenceScheduler(self.config, self._initial_states, *held)
            return sequences, SequenceDispatcher(name, version, sequences, makers, statistics, clock)
        batcher = DynamicBatcher(BatchingRules.of(self.config), delay_hooks.held_requests(delay_hooks.DYNAMIC))
        return batcher, Dispatcher(name, version, batcher, makers, statistics, clock, self._order)

    def _makers(self) -> list[tuple[InstancePlacement, NewInstance]]:
        """Return what makes each instance of the present configuration."""
        return [(slot, self._maker.maker(self.config, slot)) for slot in self._maker.placements(self.config)]

    def holds_adapter(self, name: str) -> bool:
        """Return whether requests may name an adapter."""
        return self.adapters.holds(name)

    def takes_adapter(self, name: str) -> bool:
        """Return whether it can answer requests that name an adapter."""
        return self.ready and self.adapters.holds(name)

    def adapter_problem(self, name: str) -> str:
        """Return why it cannot answer requests that name an adapter, "" if it can."""
        return self.adapters.failures.get(name, self.problem)

    def adapter_caution(self, name: str) -> str:
        """Return why it may not answer requests that name an adapter for long."""
        return self.caution

    def lacks_adapter(self, adapter: LoadedAdapter) -> bool:
        """Return False: each instance that is loaded later gets the adapters, too."""
        return False

    async def add_adapter(self, adapter: LoadedAdapter) -> None:
        """Load an adapter into every instance, also into those that are loaded later. Raises ServingError."""
        await self.adapters.add(adapter, self._dispatcher.group.manage)
        self._forget_answers()

    async def remove_adapter(self, adapter: LoadedAdapter) -> None:
        """Unload an adapter from every instance, unless another one has its name by now."""
        try:
            await self.adapters.remove(adapter, self._dispatcher.group.manage)
        except ServingError as error:
            _log.warning("adapter '%s' of model '%s' cannot be unloaded: %s", adapter.name, self.name, error.message)
        self._forget_answers()

    def _forget_answers(self) -> None:
        """Use no answer of the cache any more: an adapter's name may mean other weights now."""
        if self._cached is not None:
            self._cached.forget()

    async def _add_adapters(self, instance: Instance, present: Mapping[str, LoadedAdapter] = NO_ADAPTERS) -> None:
        """Load the adapters that are not `present` into an instance. One that does not fit fails by itself."""
        for name, error in await self.adapters.load(instance.manage, present):
            _log.error("adapter '%s' of model '%s' cannot be loaded: %s", name, self.name, error.message)

    def _present_adapters(self) -> UpdateAdapters:
        """Return how an instance that has the present adapters gets those of a later time."""
        return partial(self._add_adapters, present=self.adapters.present)

    async def start(self) -> None:
        """Load every instance and warm it up. Releases everything where that fails."""
        begun = monotonic()
        try:
            self._limit()
            await asyncio.to_thread(self._maker.require_gpu_memory, self.config)
            warm_up = await asyncio.to_thread(self._warm_up)
            self._initial_states.update(await asyncio.to_thread(self._read_initial_states))
            strategy = await asyncio.to_thread(self._strategy)
            if isinstance(self._scheduler, DynamicBatcher):
                self._scheduler.strategy = strategy
            await self._dispatcher.start(warm_up, self._timeout)
        except BaseException:
            if self._limited is not None:
                self._limited.close()
            raise
        self.statistics.load_seconds = monotonic() - begun

    def _warm_up(self) -> list[list[InferRequest]]:
        return warmup.batches(self.config, self._data_folder(WARMUP_FOLDER), self._admission)

    def _read_initial_states(self) -> dict[str, Tensor]:
        return initial_states(self.config, self._data_folder(INITIAL_STATE_FOLDER))

    async def change(self, prepared: Prepared) -> "PreparedChange":
        """Prepare to serve by another configuration that the instances suit: load its additional instances.

        Raises ServingError, and changes nothing then.
        """
        config = ModelConfig()
        config.CopyFrom(prepared.config)
        # Queued requests may be as large as the former limit.
        config.max_batch_size = self._most
        try:
            await self._sleep.defer()
            present = self._instances.all
            added, removed = self._instances.difference(self._maker.placements(config))
            self._limit(added)
            slots = await self._dispatcher.group.load([self._maker.maker(config, slot) for slot in added])
        except BaseException:
            self._limit()
            self._sleep.allow()
            raise
        return PreparedChange(self, prepared, list(zip(added, slots, strict=True)), removed, present)

    def follow(self, change: "PreparedChange") -> Awaitable[object]:
        """Apply a configuration, as `PreparedChange.commit` says."""
        if change.prepared.config.max_batch_size != self.config.max_batch_size:
            self._admission = Admission(change.prepared.config)
        self.config, self.labels = change.prepared.config, change.prepared.labels
        rules = BatchingRules.of(self.config)
        if rules.preserve_ordering != (self._order is not None):
            self._order = ResponseOrder() if rules.preserve_ordering else None
        self._scheduler.apply(self.config)
        self._dispatcher.follow(self._order)
        # If they could not be woken for the change, a request may have woken them since.
        woken = [one for one in self._instances.all if one not in change.present]
        removed = [*change.removed, *woken]
        self._instances.swap(change.added, removed)
        group = self._dispatcher.group
        gone = group.swap([slot for _, slot in change.added], [slot for _, slot in removed])
        self._limit()
        self._sleep.replaced()
        self._sleep.allow()
        return asyncio.gather(*map(asyncio.shield, gone))

    async def forget(self, change: "PreparedChange") -> None:
        """Release the additional instances of a change."""
        self._sleep.allow()
        await self._dispatcher.group.discard([slot for _, slot in change.added])
        self._limit()

    def _limit(self, more: Sequence[InstancePlacement] = ()) -> None:
        """Have the rate limiter follow the present and the declared instances, and `more`. Raises ServingError where
        one of these could never run.
        """
        if self._limited is not None:
            present = [placement for placement, _ in self._instances.all]
            self._limited.follow([*present, *self._maker.placements(self.config), *more])

    @property
    def ready(self) -> bool:
        return self._dispatcher.ready

    @property
    def problem(self) -> str:
        return self._dispatcher.problem

    @property
    def caution(self) -> str:
        return self._dispatcher.caution or self.unready

    @property
    def checks_readiness(self) -> bool:
        """True if the model says itself whether it is ready."""
        return any(instance.checks_readiness for instance in self._dispatcher.group.ready_instances)

    async def check_readiness(self) -> None:
        """Have every instance say whether it is ready, and keep in `unready` what one of them lacks."""
        instances = [one for one in self._dispatcher.group.ready_instances if one.checks_readiness]
        problems = await asyncio.gather(*[instance.readiness() for instance in instances])
        unready = next(filter(None, problems), "")
        if unready != self.unready:
            self.unready = unready
            change = f"is not ready: {unready}" if unready else "is ready again"
            _log.warning("model '%s' version %d %s", self.name, self.version, change)

    @property
    def running(self) -> int:
        return self._dispatcher.running

    @property
    def instances(self) -> int | None:
        return len(self._dispatcher.instances)

    @property
    def instance_names(self) -> Collection[str]:
        return [*self._dispatcher.instances, *self._sleep.names]

    @property
    def pids(self) -> list[int]:
        """Processes of the instances; none for instances in threads of the server."""
        return self._dispatcher.group.pids

    @property
    def on_gpus(self) -> Mapping[int, OnGpu]:
        """Its instances on each GPU, by ordinal, in processes or threads."""
        return self._maker.on_gpus(self.config, (placement for placement, _ in self._instances.all))

    @property
    def takes_batches(self) -> bool:
        """True if an instance can take requests now."""
        return self._dispatcher.group.takes_batches

    @property
    def asleep(self) -> bool:
        """True if it was put to sleep; a request wakes it."""
        return self._sleep.asleep

    async def sleep(self) -> None:
        """Free the memory of its devices as far as it can. Do nothing while requests are open."""
        await self._sleep.begin()

    async def wake(self) -> None:
        """Take requests again. Raises ServingError."""
        await self._sleep.end()

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        admitted = self._admission.admit(request)
        seen = admitted.seen_by_model(request)
        deliver = self._output_shapes.before(deliver)
        if self._cached is None:
            return self._run(seen, admitted, deliver)
        return self._cached.submit(seen, deliver, self._order, lambda then: self._run(seen, admitted, then))

    def _run(self, request: InferRequest, admitted: Admitted, deliver: Deliver) -> Submission:
        if self._sleep.asleep:
            self._sleep.end_soon()
        return self._dispatcher.submit(request, admitted.size, admitted.key, deliver)

    def continues(self, request: InferRequest) -> bool:
        return self._dispatcher.continues(request)

    @property
    def owes(self) -> bool:
        return self._dispatcher.owes

    async def answered(self) -> None:
        await self._dispatcher.drained()

    def hold(self) -> None:
        self._holds.add()

    def release(self) -> None:
        self._holds.remove()

    async def close(self, grace: float) -> None:
        end = monotonic() + grace
        await self._holds.wait_for_none(grace)
        await self._sleep.close(max(0.0, end - monotonic()))
        await self._dispatcher.close(max(0.0, end - monotonic()))
        if self._limited is not None:
            self._limited.close()
        # Explicitly: memory must not wait until the garbage collector looks for circles.
        self._dispatcher.group.prepare = None


class PreparedChange:
    """A configuration prepared for a serving version. Either `commit` or `discard`, once.

    `added` instances are loaded, with their placements; `removed` ones still serve, of those `present` before.
    """

    def __init__(
        self,
        model: ServedModel,
        prepared: Prepared,
        added: Sequence[tuple[InstancePlacement, Slot]],
        removed: Sequence[tuple[InstancePlacement, Slot]],
        present: Sequence[tuple[InstancePlacement, Slot]],
    ) -> None:
        self.prepared = prepared
        self.added = added
        self.removed = removed
        self.present = present
        self._model = model

    def commit(self) -> Awaitable[object]:
        """Apply the configuration.

        The result is done when the removed instances have finished their work and are released.
        """
        return self._model.follow(self)

    async def discard(self) -> None:
        """Release the additional instances; the version goes on as it was."""
        await self._model.forget(self)
