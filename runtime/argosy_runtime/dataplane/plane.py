"""The interface of all front ends: inference, model control, metadata, statistics."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from importlib.metadata import version as distribution_version
from pathlib import Path
from time import monotonic
from types import MappingProxyType

from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.devices import ipc
from argosy_runtime.errors import DecoupledModelError, ServingError, invalid, unavailable
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.ondemand.loads import OnDemandLoads, loads_on_demand
from argosy_runtime.ondemand.waiting import Enter
from argosy_runtime.protocol.orca import FAMILY, CacheLoad, load_of_blocks
from argosy_runtime.protocol.trace_settings import Settings
from argosy_runtime.repository import describing
from argosy_runtime.repository.folders.layout import ModelFolder, require_folders
from argosy_runtime.repository.folders.repositories import RepositoryModels
from argosy_runtime.repository.options import ControlMode, RepositoryOptions
from argosy_runtime.repository.preparing import Preparer
from argosy_runtime.repository.preparing.features import Features
from argosy_runtime.repository.records import ModelRecord
from argosy_runtime.repository.registry import Registry
from argosy_runtime.repository.serving.served import ServedModel
from argosy_runtime.scheduling.limits.rate_limiter import RateLimiter
from argosy_runtime.scheduling.limits.resources import Resources
from argosy_runtime.scheduling.response_cache.cache import ResponseCache
from argosy_runtime.shared_memory import system
from argosy_runtime.shared_memory.regions import ClientRegions
from argosy_runtime.telemetry.log_settings import LogSettings, Setting
from argosy_runtime.telemetry.machine.certificates import CertificateState
from argosy_runtime.telemetry.machine.memory import ModelMemory
from argosy_runtime.telemetry.machine.sampling import MachineSampling
from argosy_runtime.telemetry.tracing.options import TraceOptions
from argosy_runtime.telemetry.tracing.settings import Changes
from argosy_runtime.telemetry.tracing.tracer import Tracer

from .caches import load_of_engines
from .control import ModelControl
from .exposed import ExposedMetrics
from .model_calls import ModelCalls
from .readiness import Readiness
from .startup import follow_changes, load_named

SERVER_NAME = "argosy"
EXTENSIONS = (
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
)

_log = logging.getLogger("argosy.dataplane")
# How long the end may take for traces that are not written or sent yet.
_LAST_TRACES_S = 5.0


class DataPlane:
    """The server's service without a protocol, as `frontends.port` declares it. All methods run on the event loop.

    `gpus` are those it may use: ordinal to compute capability, such as "9.0"; `gpu_uuids` names them to the driver. The
    caller starts and stops `machine`, and reports the `certificates` of its ports.
    """

    def __init__(
        self,
        options: RepositoryOptions,
        gpus: Mapping[int, str],
        server_id: str = SERVER_NAME,
        strict_readiness: bool = True,
        log: LogSettings | None = None,
        machine: MachineSampling | None = None,
        certificates: Callable[[], Iterable[CertificateState]] = tuple,
        gpu_uuids: Mapping[int, str] = MappingProxyType({}),
        tracing: TraceOptions | None = None,
        regions: ClientRegions | None = None,
    ) -> None:
        self._options = options
        self.regions = regions or ClientRegions(system.open_memory, ipc.open_memory)
        self._log_settings = log or LogSettings()
        self.tracer = Tracer(tracing or TraceOptions())
        self._seen: Mapping[str, ModelFolder] = {}
        self._server_id = server_id
        self._index = describing.Index()
        self._calls = calls = ModelCalls(self.tracer)
        cache = ResponseCache(options.cache_bytes) if options.cache_bytes else None
        limits = options.rate_limits
        limiter = RateLimiter(Resources(limits)) if limits is not None else None
        features = Features(cache, options.metrics.summaries, limiter)
        self.registry = Registry(
            options,
            Preparer(options, gpus, calls, features),
            lambda prepared, version: ServedModel(prepared, version, gpus, calls, options),
        )
        self.memory = ModelMemory(self.registry.processes, gpu_uuids, self.registry.on_gpus)
        self.on_demand = loads_on_demand(self.registry, options.on_demand, self.memory)
        self._control = ModelControl(self.registry)
        self._readiness = Readiness(self.registry, self.on_demand, strict_readiness)
        self._submitted = 0
        self._accepting = True
        self._draining = False
        self._started = False
        self.failure: ServingError | None = None
        """Why the server cannot serve anything, None where it can."""
        self.exposed = ExposedMetrics(options.metrics, certificates, self.memory, machine, cache, self.on_demand)
        calls.connect(self.registry, self.on_demand, self._control, self._readiness, self.exposed.custom)

    async def start(self) -> dict[str, ServingError]:
        """Load the models that the control mode requires. Return the failures by model.

        Where a repository cannot be read, nothing is loaded, and `failure` says why.
        """
        self.memory.start()
        try:
            await asyncio.to_thread(require_folders, self._options.paths)
            failures = await self._load_first()
        except ServingError as error:
            self.failure = error
            self.registry.serves = False
            return {}
        self._started = True
        return failures

    async def _load_first(self) -> dict[str, ServingError]:
        if self._options.control_mode is ControlMode.EXPLICIT:
            return await load_named(
                self.registry, self._options.startup_models, await self.registry.repositories.names()
            )
        self._seen = await asyncio.to_thread(self.registry.scan)
        return await self.registry.load_many(self._seen.values())

    async def poll(self) -> None:
        """Load and unload the models that changed in the repositories since the last poll."""
        self._seen = await follow_changes(self.registry, self._seen)

    def drain(self) -> None:
        """Report not ready, so that no new clients are sent here, and go on answering requests."""
        self._draining = True

    @property
    def owes(self) -> bool:
        """True while a request is not answered yet."""
        return self.registry.owes or (self.on_demand is not None and len(self.on_demand.waiters) > 0)

    def stop_accepting(self) -> None:
        """Report not ready, and refuse requests of clients; calls of running models go on, and copies end."""
        self._accepting = False
        self.registry.end_shadows()
        if self.on_demand is not None:
            self.on_demand.close()

    async def answered(self, grace: float) -> None:
        """Refuse requests of clients, and wait until those before are answered, for `grace` seconds at most."""
        self.stop_accepting()
        await self.registry.answered(grace)

    async def close(self, grace: float) -> None:
        """Answer the accepted requests, within `grace` seconds, and release every model."""
        self.stop_accepting()
        self.memory.stop()
        end = monotonic() + grace
        await self.registry.answered(grace)
        await self.registry.close(max(0.0, end - monotonic()))
        await asyncio.to_thread(self.tracer.close, _LAST_TRACES_S)
        self.regions.close()

    def live(self) -> bool:
        return self.failure is None

    def ready(self) -> bool:
        """Return whether the server takes requests, and its models are ready as far as they count for it."""
        return self._started and self._accepting and not self._draining and self._readiness.all_ready()

    def model_ready(self, name: str, version: str) -> bool:
        return self._readiness.ready(name, version)

    def readiness_check(self, name: str = "", version: str = "") -> Awaitable[None] | None:
        return self._readiness.check(name, version)

    def server_metadata(self) -> pb.ServerMetadataResponse:
        return pb.ServerMetadataResponse(
            name=self._server_id, version=distribution_version("argosy"), extensions=EXTENSIONS
        )

    def model_metadata(self, name: str, version: str) -> pb.ModelMetadataResponse:
        served = self.registry.find(name, version)
        return describing.metadata(served, self.registry.models.by_name[name], version)

    def model_config(self, name: str, version: str) -> ModelConfig:
        return self.registry.find(name, version).config

    def labels(self, name: str, version: str, output: str) -> Sequence[str]:
        return self.registry.find(name, version).labels.get(output, ())

    def statistics(self, name: str, version: str) -> pb.ModelStatisticsResponse:
        self.registry.require_working()
        return describing.statistics(self._records(name), name, version, self.memory.messages_of)

    def _records(self, name: str = "") -> list[ModelRecord]:
        models = self.registry.models
        if name:
            return [models.by_name[name]] if name in models.by_name else []
        return [models.records[identifier] for identifier in sorted(models.records)]

    async def index(self, ready_only: bool) -> pb.RepositoryIndexResponse:
        self.registry.require_working()
        listed = RepositoryModels({}) if ready_only else await self.registry.repository_models()
        return self._index.message(self.registry.records, listed, ready_only)

    async def load(self, name: str, config: str | None, files: Mapping[str, bytes]) -> None:
        await self._control.load(name, config, files)

    async def divide(self, name: str) -> None:
        await self._control.divide(name)

    async def unload(self, name: str, unload_dependents: bool) -> None:
        await self._control.unload(name, unload_dependents)

    async def register(self, repository: Path, folder: str, name: str) -> None:
        await self._control.register(repository, folder, name)

    def unregister(self, repository: Path) -> None:
        self._control.unregister(repository)

    @property
    def requests(self) -> int:
        """The number of inference requests since the start, those of running models among them."""
        return self._submitted + self._calls.requests

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        self._submitted += 1
        try:
            served = self.registry.route(request)
        except ServingError as refusal:
            if self.on_demand is None or not self._accepting:
                raise
            return self._submit_later(self.on_demand, request, deliver, single, refusal)
        if single and served.decoupled:
            raise DecoupledModelError
        if not self._accepting and not served.continues(request):
            raise unavailable(_stopping(request, self.model_config(request.model_name, request.model_version)))
        if self.tracer.active:
            return self._traced(request, deliver, served.submit)
        return served.submit(request, deliver)

    def _submit_later(
        self, on_demand: OnDemandLoads, request: InferRequest, deliver: Deliver, single: bool, refusal: ServingError
    ) -> Submission:
        def enter(request: InferRequest, deliver: Deliver) -> Submission:
            served = self.registry.route(request)
            if single and served.decoupled:
                raise DecoupledModelError
            return served.submit(request, deliver)

        def wait(request: InferRequest, deliver: Deliver) -> Submission:
            return on_demand.submit(request, deliver, enter, refusal)

        return self._traced(request, deliver, wait) if self.tracer.active else wait(request, deliver)

    def _traced(self, request: InferRequest, deliver: Deliver, submit: Enter) -> Submission:
        """Submit a request, with a trace where it is chosen for one. Raises what `submit` raises."""
        deliver = self.tracer.begin(request, deliver)
        try:
            return submit(request, deliver)
        except BaseException:
            self.tracer.refused(request)
            raise

    async def demand(self, name: str, version: str) -> None:
        if self.on_demand is not None:
            await self.on_demand.demand(name, version)

    def when_loaded(self, name: str, version: str, then: Callable[[ServingError | None], None]) -> bool:
        return self.on_demand is not None and self.on_demand.when_loaded(name, version, then)

    def pin(self, requests: Sequence[InferRequest]) -> None:
        first = requests[0]
        record = self.registry.models.by_name.get(first.model_name)
        if not first.model_version and record is not None and record.split is not None:
            version = self.registry.route(first).version
            for request in requests:
                request.pinned = version

    def log_settings(self) -> dict[str, Setting]:
        return self._log_settings.values()

    def change_log_settings(self, changes: Mapping[str, Setting]) -> None:
        self._log_settings.change(changes)

    def cache_load(self, name: str) -> CacheLoad | None:
        samples = self.exposed.custom.samples(FAMILY)
        return load_of_blocks(samples) if samples else load_of_engines(self._records(), name)

    def trace_settings(self, name: str) -> Settings:
        self._require_ready(name)
        return self.tracer.settings(name)

    def change_trace_settings(self, name: str, changes: Changes) -> None:
        self._require_ready(name)
        self.tracer.change(name, changes)

    def _require_ready(self, name: str) -> None:
        """Raise an error unless a model, or all of them for "", can have trace settings."""
        if name and not self.model_ready(name, ""):
            raise invalid(f"Request for unknown model : {name}")

    def metrics(self) -> AsyncIterator[bytes]:
        return self.exposed.texts(self._records())


def _stopping(request: InferRequest, config: ModelConfig) -> str:
    """Return the message for a request that comes while the server ends."""
    ensemble = f"in ensemble '{config.name}', " if config.HasField("ensemble_scheduling") else ""
    refusal = "Server is stopping, scheduler for model has stopped accepting new inference requests"
    return f"{ensemble}{request.log_prefix}{refusal}"
