"""One version of one model in service: its instances, its queue, its counters."""

import asyncio
from collections.abc import Awaitable, Collection, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Protocol

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.execution.calls import ServerCalls
from argosy_runtime.execution.clock import LoopClock
from argosy_runtime.execution.dispatcher import Dispatcher
from argosy_runtime.execution.ensembles import EnsembleRunner
from argosy_runtime.execution.instance_group import Slot
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.modelconfig import InstancePlacement
from argosy_runtime.repository.options import RepositoryOptions
from argosy_runtime.repository.preparing import Prepared, load_timeout
from argosy_runtime.scheduling.admission import Admission
from argosy_runtime.scheduling.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.ensemble_steps import EnsembleSteps
from argosy_runtime.scheduling.ordering import ResponseOrder
from argosy_runtime.telemetry.statistics import ModelStatistics

from . import warmup
from .copies import Copies, CopyMaker
from .holds import Holds
from .reshaping import OutputShapes


class ServedVersion(Protocol):
    """What requests are given to."""

    name: str
    version: int
    folder: Path
    config: ModelConfig
    statistics: ModelStatistics
    labels: Mapping[str, Sequence[str]]
    decoupled: bool

    @property
    def ready(self) -> bool:
        """Whether it can answer."""

    @property
    def problem(self) -> str:
        """Why it cannot, "" where it can."""

    @property
    def caution(self) -> str:
        """Why it may not be able to for long, "" where nothing speaks for that."""

    @property
    def running(self) -> int:
        """Requests that are being executed."""

    @property
    def instances(self) -> int | None:
        """How many are loaded; None for an ensemble, which has none."""

    @property
    def instance_names(self) -> Collection[str]:
        """Their names."""

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request. Raises ServingError where it may not enter; all else is delivered."""

    @property
    def owes(self) -> bool:
        """Whether a request waits for an answer of its own; an ensemble's are told by its steps."""

    async def answered(self) -> None:
        """Wait until it owes none."""

    def hold(self) -> None:
        """A request of an ensemble has begun that will need this version: it stays until `release`."""

    def release(self) -> None:
        """That request is over."""

    async def close(self, grace: float) -> None:
        """Answer what has been accepted, then release everything."""


class Change(Protocol):
    """Another configuration on its way into a version that serves: what is new of it is loaded, and that is all.

    Either `commit` or `discard`, once.
    """

    def commit(self) -> Awaitable[object]:
        """Put it into force. What is returned is done when what had to go has finished what it ran, and is gone."""

    async def discard(self) -> None:
        """Release what was loaded for it; the version goes on as it was."""


class LoadingVersion(ServedVersion, Protocol):
    """A version that has instances to load."""

    async def start(self) -> None:
        """Load and warm up. However that ends without success, nothing of it is left."""

    async def change(self, prepared: Prepared) -> Change:
        """Get ready to serve by another configuration, which its instances suit. Raises ServingError, and then goes on
        as it was.
        """


class ServedModel:
    """A version that a backend runs."""

    def __init__(
        self,
        prepared: Prepared,
        version: int,
        gpus: Mapping[int, str],
        calls: ServerCalls,
        options: RepositoryOptions,
    ):
        self.name = prepared.config.name
        self.version = version
        self.config = prepared.config
        self.decoupled = bool(prepared.config.model_transaction_policy.decoupled)
        self.statistics = ModelStatistics()
        self.labels = prepared.labels
        self.folder = prepared.folder.path
        self._most = prepared.config.max_batch_size
        self._timeout = load_timeout(self.config, options)
        self._maker = CopyMaker(prepared.folder, version, gpus, calls, self.statistics.engines, self._timeout)
        self._admission = Admission(self.config)
        self._output_shapes = OutputShapes(self.config)
        self._holds = Holds()
        placements = self._maker.placements(self.config)
        rules = BatchingRules.of(self.config)
        self._batcher = DynamicBatcher(rules)
        self._order = ResponseOrder() if rules.preserve_ordering else None
        self._dispatcher = Dispatcher(
            self.name,
            version,
            self._batcher,
            [self._maker.maker(self.config, slot) for slot in placements],
            self.statistics,
            LoopClock(),
            self._order,
        )
        self._copies = Copies(placements, self._dispatcher.group)

    async def start(self) -> None:
        """Load every instance and warm it up; however that ends without success, nothing of it is left."""
        begun = monotonic()
        warm_up = await asyncio.to_thread(warmup.batches, self.config, self.folder, self._admission)
        await self._dispatcher.start(warm_up, self._timeout)
        self.statistics.load_seconds = monotonic() - begun

    async def change(self, prepared: Prepared) -> "PreparedChange":
        config = ModelConfig()
        config.CopyFrom(prepared.config)
        # What waits may be as large as it was let in.
        config.max_batch_size = self._most
        added, removed = self._copies.difference(self._maker.placements(config))
        places = await self._dispatcher.group.load([self._maker.maker(config, slot) for slot in added])
        return PreparedChange(self, prepared, list(zip(added, places, strict=True)), removed)

    def follow(self, change: "PreparedChange") -> Awaitable[object]:
        if change.prepared.config.max_batch_size != self.config.max_batch_size:
            self._admission = Admission(change.prepared.config)
        self.config, self.labels = change.prepared.config, change.prepared.labels
        rules = BatchingRules.of(self.config)
        if rules.preserve_ordering != (self._order is not None):
            self._order = ResponseOrder() if rules.preserve_ordering else None
        self._batcher.follow(rules)
        self._dispatcher.follow(self._order)
        self._copies.swap(change.added, change.removed)
        group = self._dispatcher.group
        gone = group.swap([slot for _, slot in change.added], [slot for _, slot in change.removed])
        return asyncio.gather(*map(asyncio.shield, gone))

    async def forget(self, change: "PreparedChange") -> None:
        await self._dispatcher.group.discard([slot for _, slot in change.added])

    @property
    def ready(self) -> bool:
        return self._dispatcher.ready

    @property
    def problem(self) -> str:
        return self._dispatcher.problem

    @property
    def caution(self) -> str:
        return self._dispatcher.caution

    @property
    def running(self) -> int:
        return self._dispatcher.running

    @property
    def instances(self) -> int | None:
        return len(self._dispatcher.instances)

    @property
    def instance_names(self) -> Collection[str]:
        return self._dispatcher.instances

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        admitted = self._admission.admit(request)
        request = admitted.seen_by_model(request)
        return self._dispatcher.submit(request, admitted.size, admitted.key, self._output_shapes.before(deliver))

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
        await self._dispatcher.close(max(0.0, end - monotonic()))


class PreparedChange:
    """See `Change`. `added` are loaded, by their places in the configuration; `removed` still serve."""

    def __init__(
        self,
        model: ServedModel,
        prepared: Prepared,
        added: Sequence[tuple[InstancePlacement, Slot]],
        removed: Sequence[tuple[InstancePlacement, Slot]],
    ) -> None:
        self.prepared = prepared
        self.added = added
        self.removed = removed
        self._model = model

    def commit(self) -> Awaitable[object]:
        return self._model.follow(self)

    async def discard(self) -> None:
        await self._model.forget(self)


class ServedEnsemble:
    """A version of an ensemble. It has no resources of its own: its steps are versions of other models of the server.

    `models` are those, by name and version as the steps name them. A request goes through the ones it began with.
    """

    def __init__(
        self,
        prepared: Prepared,
        version: int,
        steps: EnsembleSteps,
        models: Mapping[tuple[str, str], "ServedVersion"],
        statistics: ModelStatistics,
    ):
        self.name = prepared.config.name
        self.version = version
        self.config = prepared.config
        self.decoupled = bool(prepared.config.model_transaction_policy.decoupled)
        self.statistics = statistics
        self.labels = prepared.labels
        self.folder = prepared.folder.path
        self._admission = Admission(self.config)
        self._output_shapes = OutputShapes(self.config)
        self._models = models
        self._by_step = [models[step.model, step.version] for step in steps.steps]
        self._holding = 0
        self._runner = EnsembleRunner(steps, version, self, statistics, LoopClock())

    @property
    def ready(self) -> bool:
        # Asked with every request: a loop costs half of what a generator does.
        for model in self._models.values():  # noqa: SIM110
            if not model.ready:
                return False
        return True

    @property
    def problem(self) -> str:
        return "; ".join(model.problem for model in self._models.values() if not model.ready)

    @property
    def caution(self) -> str:
        return "; ".join(caution for model in self._models.values() if (caution := model.caution))

    @property
    def running(self) -> int:
        return self._runner.running

    @property
    def instances(self) -> int | None:
        return None

    @property
    def instance_names(self) -> Collection[str]:
        return ()

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        admitted = self._admission.admit(request)
        request = admitted.seen_by_model(request)
        return self._runner.submit(request, admitted.size, self._output_shapes.before(deliver))

    def submit_step(self, index: int, request: InferRequest, deliver: Deliver) -> Submission:
        return self._by_step[index].submit(request, deliver)

    @property
    def owes(self) -> bool:
        return False

    async def answered(self) -> None:
        """See `ServedVersion`."""

    def hold(self) -> None:
        """See `ServedVersion`: whoever needs the ensemble needs its steps. The first of them holds those for all."""
        if not self._holding:
            for model in self._models.values():
                model.hold()
        self._holding += 1

    def release(self) -> None:
        self._holding -= 1
        if not self._holding:
            for model in self._models.values():
                model.release()

    async def close(self, grace: float) -> None:
        """See `ServedVersion`. Requests on their way hold the steps they need."""
