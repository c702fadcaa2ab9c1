"""The interface of all front ends: inference, model control, metadata, statistics. And that of running models."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version as distribution_version
from time import monotonic, monotonic_ns, time

from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelConfig

from .backends.contract import ActOnMetric, IsModelReady, LoadModel, Log, ServerCall, UnloadModel
from .backends.devices import ipc
from .backends.devices.pinned_pool import PINNED_POOL
from .errors import DecoupledModelError, ErrorKind, ServingError, invalid, unavailable, unsupported
from .messages import Deliver, InferRequest, Submission
from .protocol.trace_settings import Settings
from .repository import describing
from .repository.folders.layout import ModelFolder
from .repository.folders.watch import changes
from .repository.options import ControlMode, RepositoryOptions
from .repository.preparing import Preparer
from .repository.preparing.features import Features
from .repository.records import ModelRecord
from .repository.registry import Registry
from .repository.serving.served import ServedModel
from .repository.serving.version import Destination
from .scheduling.limits.rate_limiter import RateLimiter
from .scheduling.limits.resources import Resources
from .scheduling.response_cache.cache import ResponseCache
from .shared_memory import system
from .shared_memory.regions import ClientRegions
from .telemetry.argosy_families import argosy_families, device_families
from .telemetry.custom import CustomMetrics
from .telemetry.exposition import Family
from .telemetry.log_settings import LogSettings, Setting
from .telemetry.machine.certificates import CertificateState, certificate_families
from .telemetry.machine.sampling import MachineSampling
from .telemetry.parts import in_parts
from .telemetry.tracing.options import TraceOptions
from .telemetry.tracing.settings import Changes
from .telemetry.tracing.tracer import Tracer
from .telemetry.triton_families import cache_families, pinned_families, triton_families
from .telemetry.vllm_families import vllm_families
from .tensors.device_arrays import DEVICE_TRANSFERS

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
_model_log = logging.getLogger("argosy.model")
_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "verbose": logging.DEBUG}


class DataPlane:
    """The server's service without a protocol, as `frontends.port` declares it. All methods run on the event loop.

    `gpus` are those it may use: ordinal to compute capability, such as "9.0". The caller starts and stops `machine`,
    and reports the `certificates` of its ports.
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
        tracing: TraceOptions | None = None,
        regions: ClientRegions | None = None,
    ) -> None:
        self._options = options
        self.regions = regions or ClientRegions(system.open_memory, ipc.open_memory)
        self._log_settings = log or LogSettings()
        self._strict_readiness = strict_readiness
        self._machine = machine
        self._certificates = certificates
        self.tracer = Tracer(tracing or TraceOptions())
        self._seen: dict[str, ModelFolder] = {}
        self._server_id = server_id
        self._index = describing.Index()
        calls = ModelCalls(self)
        self._cache = ResponseCache(options.cache_bytes) if options.cache_bytes else None
        limits = options.rate_limits
        limiter = RateLimiter(Resources(limits)) if limits is not None else None
        features = Features(self._cache, options.metrics.summaries, limiter)
        self.registry = Registry(
            options,
            Preparer(options, gpus, calls, features),
            lambda prepared, version: ServedModel(prepared, version, gpus, calls, options),
        )
        self.requests = 0
        """The number of inference requests that were decoded since the start."""
        self._accepting = True
        self._draining = False
        self._started = False
        self._startup_failures: dict[str, ServingError] = {}
        self._custom = CustomMetrics([family.name for family in (*self._model_families([]), *self._own_families())])

    async def start(self) -> dict[str, ServingError]:
        """Load the models that the control mode requires. Return the failures by model."""
        if self._options.control_mode is ControlMode.EXPLICIT:
            self._startup_failures = await self._load_named(await self.registry.names())
        else:
            self._seen = await asyncio.to_thread(self.registry.scan)
            self._startup_failures = await self.registry.load_many(self._seen.values())
        self._started = True
        return self._startup_failures

    async def _load_named(self, existing: Iterable[str]) -> dict[str, ServingError]:
        requested = self._options.startup_models
        names = sorted(existing) if "*" in requested else list(dict.fromkeys(requested))
        loads = [self.registry.load(name, None, {}) for name in names]
        results = await asyncio.gather(*loads, return_exceptions=True)
        failures = {}
        for name, result in zip(names, results, strict=True):
            if isinstance(result, ServingError):
                failures[name] = result
            elif result is not None:
                raise result
        return failures

    async def poll(self) -> None:
        """Load and unload the models that changed in the repositories since the last poll."""
        try:
            folders = await asyncio.to_thread(self.registry.scan)
        except ServingError as error:
            _log.error("cannot look into the model repository: %s", error.message)
            return
        changed = changes(self._seen, folders)
        self._seen = folders
        for name in changed.removed:
            await self.registry.unload(name, unload_dependents=False)
        await self.registry.load_many(folders[name] for name in (*changed.added, *changed.modified))

    def drain(self) -> None:
        """Report not ready, so that no new clients are sent here, and go on answering requests."""
        self._draining = True

    @property
    def owes(self) -> bool:
        """Whether some request is not answered yet."""
        return self.registry.owes

    def stop_accepting(self) -> None:
        """Report not ready, and refuse requests of clients; calls of running models go on, and copies end."""
        self._accepting = False
        self.registry.end_shadows()

    async def answered(self, grace: float) -> None:
        """Refuse requests of clients, and wait until those before are answered, for `grace` seconds at most."""
        self.stop_accepting()
        await self.registry.answered(grace)

    async def close(self, grace: float) -> None:
        """Answer the accepted requests, within `grace` seconds, and release every model."""
        self.stop_accepting()
        end = monotonic() + grace
        await self.registry.answered(grace)
        await self.registry.close(max(0.0, end - monotonic()))
        await asyncio.to_thread(self.tracer.close, _LAST_TRACES_S)
        self.regions.close()

    def live(self) -> bool:
        return True

    def ready(self) -> bool:
        """Return whether every requested model serves and none is being loaded or unloaded."""
        if self._draining or not (self._started and self._accepting):
            return False
        if not self._strict_readiness:
            return True
        records = self.registry.records.values()
        if self._startup_failures_now() or any(record.busy for record in records):
            return False
        return not any(model.unready for model in self._checked_models())

    def _startup_failures_now(self) -> list[str]:
        """Return the models that failed at start and have not been loaded or unloaded since."""
        records = self.registry.records
        return [
            name
            for name in self._startup_failures
            if name not in records or (records[name].desired and not any(True for _ in records[name].serving()))
        ]

    def model_ready(self, name: str, version: str) -> bool:
        try:
            served = self.registry.find(name, version)
            return served.ready and not (isinstance(served, ServedModel) and served.unready)
        except ServingError as error:
            if error.kind in (ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE):
                return False
            raise

    def readiness_check(self, name: str = "", version: str = "") -> Awaitable[None] | None:
        if not name:
            models = list(self._checked_models()) if self._strict_readiness else []
            return _all_checked(models) if models else None
        try:
            served = self.registry.find(name, version)
        except ServingError:
            return None
        return _all_checked([served]) if isinstance(served, ServedModel) and served.checks_readiness else None

    def _checked_models(self) -> Iterator[ServedModel]:
        """Yield the versions in service whose models say themselves whether they are ready."""
        for record in self.registry.records.values():
            for _, served in record.serving():
                if isinstance(served, ServedModel) and served.checks_readiness:
                    yield served

    def server_metadata(self) -> pb.ServerMetadataResponse:
        return pb.ServerMetadataResponse(
            name=self._server_id, version=distribution_version("argosy"), extensions=EXTENSIONS
        )

    def model_metadata(self, name: str, version: str) -> pb.ModelMetadataResponse:
        served = self.registry.find(name, version)
        return describing.metadata(served, self.registry.records[name])

    def model_config(self, name: str, version: str) -> ModelConfig:
        return self.registry.find(name, version).config

    def labels(self, name: str, version: str, output: str) -> Sequence[str]:
        return self.registry.find(name, version).labels.get(output, ())

    def statistics(self, name: str, version: str) -> pb.ModelStatisticsResponse:
        return describing.statistics(self._records(name), name, version)

    def _records(self, name: str = "") -> list[ModelRecord]:
        records = self.registry.records
        return [records[key] for key in sorted(records) if name in ("", key)]

    async def index(self, ready_only: bool) -> pb.RepositoryIndexResponse:
        names = frozenset[str]() if ready_only else await self.registry.names()
        records = self.registry.records
        return self._index.message(records, records.keys() | names, ready_only)

    async def load(self, name: str, config: str | None, files: Mapping[str, bytes], for_model: bool = False) -> None:
        """Load or reload a model; `for_model`: a running model requests it, which may override files."""
        self._require_explicit("load", name)
        if (config is not None or files) and not (for_model or self._options.overrides):
            raise unsupported(
                f"cannot load '{name}' with a configuration or files of the request: this server takes models as its "
                "repository has them, unless it is started with --allow-override-files=true"
            )
        await self.registry.load(name, config, files, for_model)

    async def divide(self, name: str) -> None:
        self._require_explicit("divide the requests of", name)
        await self.registry.divide(name)

    async def unload(self, name: str, unload_dependents: bool) -> None:
        self._require_explicit("unload", name)
        await self.registry.unload(name, unload_dependents)

    def _require_explicit(self, what: str, name: str) -> None:
        if self._options.control_mode is not ControlMode.EXPLICIT:
            mode = (
                "polling is enabled" if self._options.control_mode is ControlMode.POLL else "model control is disabled"
            )
            raise unavailable(f"explicit model load / unload is not allowed if {mode}: cannot {what} '{name}'")

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        self.requests += 1
        served = self.registry.route(request)
        if single and served.decoupled:
            raise DecoupledModelError
        if not self._accepting and not served.continues(request):
            raise unavailable(_stopping(request, served.config))
        if self.tracer.active:
            return self._submit_traced(served, request, deliver)
        return served.submit(request, deliver)

    def _submit_traced(self, served: Destination, request: InferRequest, deliver: Deliver) -> Submission:
        deliver = self.tracer.begin(request, deliver)
        try:
            return served.submit(request, deliver)
        except BaseException:
            self.tracer.refused(request)
            raise

    def pin(self, requests: Sequence[InferRequest]) -> None:
        first = requests[0]
        record = self.registry.records.get(first.model_name)
        if not first.model_version and record is not None and record.split is not None:
            version = self.registry.route(first).version
            for request in requests:
                request.pinned = version

    def route_call(self, request: InferRequest) -> Destination:
        """Return the version that answers a request of a running model. Raises ServingError."""
        self.requests += not request.is_shadow
        return self.registry.route(request)

    def log_settings(self) -> dict[str, Setting]:
        return self._log_settings.values()

    def change_log_settings(self, changes: Mapping[str, Setting]) -> None:
        self._log_settings.change(changes)

    def model_metric(self, family: str) -> Sequence[tuple[Mapping[str, str], float]]:
        return self._custom.samples(family)

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
        return in_parts(self._records(), self._model_families, self._other_families)

    def _model_families(self, records: Sequence[ModelRecord]) -> list[Family]:
        now = monotonic_ns()
        series = describing.series(records, now)
        return [
            *triton_families(series, self._options.metrics),
            *argosy_families(series, now),
            *vllm_families(series, time()),
        ]

    def _other_families(self) -> list[Family]:
        return [*self._own_families(), *self._custom.families()]

    def _own_families(self) -> list[Family]:
        machine = self._machine.families() if self._machine is not None else []
        cache = cache_families(self._cache) if self._cache is not None else []
        certificates = certificate_families(self._certificates())
        return [*cache, *pinned_families(PINNED_POOL), *device_families(DEVICE_TRANSFERS), *certificates, *machine]

    @property
    def custom_metrics(self) -> CustomMetrics:
        """Metrics that models define."""
        return self._custom


def _stopping(request: InferRequest, config: ModelConfig) -> str:
    """Return the message for a request that comes while the server ends."""
    ensemble = f"in ensemble '{config.name}', " if config.HasField("ensemble_scheduling") else ""
    refusal = "Server is stopping, scheduler for model has stopped accepting new inference requests"
    return f"{ensemble}{request.log_prefix}{refusal}"


async def _all_checked(models: Sequence[ServedModel]) -> None:
    await asyncio.gather(*[model.check_readiness() for model in models])


class ModelCalls:
    """The data plane for running models (business logic scripting), which answers as to a client."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane

    def infer(self, request: InferRequest, decoupled: bool, deliver: Deliver) -> Submission:
        """Start a request. Raises ServingError, with Triton's messages for models, where it may not enter."""
        name = request.model_name
        try:
            served = self._plane.route_call(request)
        except ServingError:
            raise unavailable(f"Failed for execute the inference request. Model '{name}' is not ready.") from None
        if served.decoupled and not decoupled:
            raise unsupported(
                f"Model {name} is using the decoupled. The current BLS request call doesn't support models using the "
                "decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' "
                "calls for decoupled models.'"
            )
        if request.trace is not None:
            request.trace = self._plane.tracer.called(request.trace)
        return served.submit(request, deliver)

    async def do(self, what: ServerCall, owner: int) -> bool | float | None:
        """Load, unload, log, or change or look something up, as a client would. Raises ServingError."""
        match what:
            case Log(level, message):
                _model_log.log(_LEVELS.get(level, logging.INFO), "%s", message)
            case ActOnMetric(family, labels, action, value):
                return self._plane.custom_metrics.act(owner, family, labels, action, value)
            case IsModelReady(name, version):
                return await self._is_ready(name, version)
            case LoadModel(name, config, files):
                await self._plane.load(name, config, files, for_model=True)
            case UnloadModel(name, unload_dependents):
                await self._plane.unload(name, unload_dependents)
        return None

    def forget(self, owner: int) -> None:
        """Remove an instance that has ended from the owners of its metrics."""
        self._plane.custom_metrics.forget(owner)

    async def _is_ready(self, name: str, version: str) -> bool:
        if (check := self._plane.readiness_check(name, version)) is not None:
            await check
        try:
            return self._plane.model_ready(name, version)
        except ServingError:
            return False


__all__ = ["DataPlane", "EXTENSIONS", "SERVER_NAME"]
