"""What every front end calls: inference, model control, metadata, statistics. One method, one question."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from importlib.metadata import version as distribution_version

from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

from .backends.contract import MetricFamilySpec
from .errors import DecoupledModelError, ErrorKind, ServingError, invalid, unavailable, unsupported
from .execution.ensembles import Cancel, Deliver, Submit
from .messages import InferRequest, InferResponse
from .modelconfig.datatypes import v2_name
from .repository.layout import ModelFolder
from .repository.options import ControlMode, RepositoryOptions
from .repository.records import ModelRecord, State
from .repository.registry import Registry
from .repository.watch import changes
from .telemetry.custom import CustomMetrics
from .telemetry.exposition import Family, exposition
from .telemetry.log_settings import LogSettings, Setting
from .telemetry.metrics import ModelSeries, model_families

SERVER_NAME = "argosy"
EXTENSIONS = (
    "classification",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "logging",
)

_log = logging.getLogger("argosy.dataplane")
_model_log = logging.getLogger("argosy.model")
_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "verbose": logging.DEBUG}


class DataPlane:
    """The server's whole service, without a protocol. All methods run on the event loop."""

    def __init__(
        self,
        options: RepositoryOptions,
        gpus: Sequence[int],
        server_id: str = SERVER_NAME,
        strict_readiness: bool = True,
        log: LogSettings | None = None,
    ) -> None:
        self._options = options
        self._log_settings = log or LogSettings()
        self._strict_readiness = strict_readiness
        self._seen: dict[str, ModelFolder] = {}
        self._server_id = server_id
        self._custom = CustomMetrics()
        self.registry = Registry(options, gpus, _Calls(self))
        self._accepting = True
        self._started = False
        self._startup_failures: dict[str, ServingError] = {}

    async def start(self) -> dict[str, ServingError]:
        """Load what the control mode asks for; the failures by model."""
        self._seen = folders = await asyncio.to_thread(self.registry.scan)
        if self._options.control_mode is ControlMode.EXPLICIT:
            self._startup_failures = await self._load_named(folders.keys())
        else:
            self._startup_failures = await self.registry.load_many(folders.values())
        self._started = True
        return self._startup_failures

    async def _load_named(self, known: Iterable[str]) -> dict[str, ServingError]:
        wanted = self._options.startup_models
        names = sorted(known) if "*" in wanted else wanted
        failures: dict[str, ServingError] = {}
        for name in names:
            try:
                await self.registry.load(name, None, {})
            except ServingError as error:
                failures[name] = error
                _log.error("%s", error.message)
        return failures

    async def poll(self) -> None:
        """Follow what changed in the repositories since the last look."""
        try:
            folders = await asyncio.to_thread(self.registry.scan)
        except ServingError as error:
            _log.error("cannot look into the model repository: %s", error.message)
            return
        found = changes(self._seen, folders)
        self._seen = folders
        for name in found.removed:
            await self.registry.unload(name, unload_dependents=False)
        await self.registry.load_many(folders[name] for name in (*found.added, *found.modified))

    def stop_accepting(self) -> None:
        """No longer ready; requests that come are refused."""
        self._accepting = False

    async def close(self, grace: float) -> None:
        """Answer what has been accepted, within `grace` seconds, and release every model."""
        self.stop_accepting()
        await self.registry.close(grace)

    def live(self) -> bool:
        """See `frontends.port.DataPlane`."""
        return True

    def ready(self) -> bool:
        """Every wanted model serves and none is on its way."""
        if not (self._started and self._accepting):
            return False
        if not self._strict_readiness:
            return True
        records = self.registry.records.values()
        return not self._startup_failures_now() and not any(record.busy for record in records)

    def _startup_failures_now(self) -> list[str]:
        """Models that failed at start and have not been loaded or unloaded since."""
        records = self.registry.records
        return [
            name
            for name in self._startup_failures
            if name not in records or (records[name].wanted and not any(True for _ in records[name].serving()))
        ]

    def model_ready(self, name: str, version: str) -> bool:
        """See the port."""
        try:
            return self.registry.find(name, version).ready
        except ServingError as error:
            if error.kind in (ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE):
                return False
            raise

    def server_metadata(self) -> pb.ServerMetadataResponse:
        """See the port."""
        return pb.ServerMetadataResponse(
            name=self._server_id, version=distribution_version("argosy"), extensions=EXTENSIONS
        )

    def model_metadata(self, name: str, version: str) -> pb.ModelMetadataResponse:
        """See the port."""
        served = self.registry.find(name, version)
        config = served.config
        versions = [str(number) for number, _ in self.registry.records[name].serving()]
        batch = config.max_batch_size > 0
        return pb.ModelMetadataResponse(
            name=name,
            versions=versions,
            platform=config.platform or config.backend,
            inputs=[_tensor_metadata(tensor, batch) for tensor in config.input],
            outputs=[_tensor_metadata(tensor, batch) for tensor in config.output],
        )

    def model_config(self, name: str, version: str) -> ModelConfig:
        """See the port."""
        return self.registry.find(name, version).config

    def labels(self, name: str, version: str, output: str) -> Sequence[str]:
        """See the port."""
        return self.registry.find(name, version).labels.get(output, ())

    def statistics(self, name: str, version: str) -> pb.ModelStatisticsResponse:
        """See the port."""
        if name:
            self._require_known(name, version)
        return pb.ModelStatisticsResponse(
            model_stats=[
                served.statistics.message(record.name, str(number))
                for record in self._records(name)
                for number, served in record.serving()
                if version in ("", str(number))
            ]
        )

    def _require_known(self, name: str, version: str) -> None:
        record = self.registry.records.get(name)
        serving = [str(number) for number, _ in record.serving()] if record is not None else []
        if not serving:
            raise invalid(f"requested model '{name}' is not available")
        if version and version not in serving:
            raise invalid(f"requested model version is not available for model '{name}'")

    def _records(self, name: str = "") -> list[ModelRecord]:
        records = self.registry.records
        return [records[key] for key in sorted(records) if name in ("", key)]

    def index(self, ready_only: bool) -> pb.RepositoryIndexResponse:
        """See the port."""
        response = pb.RepositoryIndexResponse()
        records = self.registry.records
        names = set(records) if ready_only else {*records, *self.registry.scan()}
        for name in sorted(names):
            versions = records[name].versions if name in records else {}
            for number, held in sorted(versions.items()):
                state = held.state if held.state is not State.READY or held.ready else State.UNAVAILABLE
                if not ready_only or state is State.READY:
                    reason = held.served.problem if held.served is not None else held.reason
                    response.models.add(name=name, version=str(number), state=state.value, reason=reason)
            if not versions and not ready_only:
                response.models.add(name=name)
        return response

    async def load(self, name: str, config: str | None, files: Mapping[str, bytes]) -> None:
        """See the port."""
        self._require_explicit("load", name)
        await self.registry.load(name, config, files)

    async def unload(self, name: str, unload_dependents: bool) -> None:
        """See the port."""
        self._require_explicit("unload", name)
        await self.registry.unload(name, unload_dependents)

    def _require_explicit(self, what: str, name: str) -> None:
        if self._options.control_mode is not ControlMode.EXPLICIT:
            mode = (
                "polling is enabled" if self._options.control_mode is ControlMode.POLL else "model control is disabled"
            )
            raise unavailable(f"explicit model load / unload is not allowed if {mode}: cannot {what} '{name}'")

    async def infer(self, request: InferRequest) -> InferResponse:
        """See the port."""
        served = self.registry.find(request.model_name, request.model_version)
        if served.config.model_transaction_policy.decoupled:
            raise DecoupledModelError
        answer: asyncio.Future[InferResponse] = asyncio.get_running_loop().create_future()

        def deliver(response: InferResponse) -> None:
            if not answer.done():
                answer.set_result(response)

        cancel = self._submit(served.submit, request, deliver)
        try:
            response = await answer
        except asyncio.CancelledError:
            cancel()
            raise
        if response.error is not None:
            raise response.error
        return _chosen(request, response)

    def _submit(self, submit: Submit, request: InferRequest, deliver: Deliver) -> Cancel:
        if not self._accepting:
            raise unavailable("Server is stopping, scheduler for model has stopped accepting new inference requests")
        return submit(request, deliver)

    async def stream(self, request: InferRequest) -> AsyncIterator[InferResponse]:
        """See the port."""
        responses: asyncio.Queue[InferResponse] = asyncio.Queue()
        cancel = self._submit(self.registry.submit, request, responses.put_nowait)
        final = False
        try:
            while not final:
                response = await responses.get()
                final = response.final
                yield _chosen(request, response)
        finally:
            if not final:
                cancel()

    def log_settings(self) -> dict[str, Setting]:
        """See the port."""
        return self._log_settings.values()

    def change_log_settings(self, changes: Mapping[str, Setting]) -> None:
        """See the port."""
        self._log_settings.change(changes)

    def metrics(self) -> bytes:
        """See the port."""
        series = [
            ModelSeries(_labels(record.name, number, served.config), served.statistics)
            for record in self._records()
            for number, served in record.serving()
        ]
        families: list[Family] = [*model_families(series), *self._custom.families()]
        return exposition(families)

    @property
    def custom_metrics(self) -> CustomMetrics:
        """Metrics that models define."""
        return self._custom


class _Calls:
    """The data plane as running models see it (`execution.calls.ServerCalls`)."""

    def __init__(self, dataplane: DataPlane) -> None:
        self._dataplane = dataplane

    async def infer(self, request: InferRequest, decoupled: bool) -> Sequence[InferResponse]:
        """Every response. Raises ServingError, in Triton's words to a model, where the request may not enter."""
        name, version = request.model_name, request.model_version
        if not await self.is_model_ready(name, version):
            raise unavailable(f"Failed for execute the inference request. Model '{name}' is not ready.")
        policy = self._dataplane.model_config(name, version).model_transaction_policy
        if policy.decoupled and not decoupled:
            raise unsupported(
                f"Model {name} is using the decoupled. The current BLS request call doesn't support models using the "
                "decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' "
                "calls for decoupled models.'"
            )
        return [response async for response in self._dataplane.stream(request)]

    async def load_model(self, name: str, config: str | None, files: dict[str, bytes]) -> None:
        """As a client's load request."""
        await self._dataplane.load(name, config, files)

    async def unload_model(self, name: str, unload_dependents: bool) -> None:
        """As a client's unload request."""
        await self._dataplane.unload(name, unload_dependents)

    async def is_model_ready(self, name: str, version: str) -> bool:
        """As a client's readiness request; an unknown model is not ready."""
        try:
            return self._dataplane.model_ready(name, version)
        except ServingError:
            return False

    async def log(self, level: str, message: str) -> None:
        """A line of a model's own."""
        _model_log.log(_LEVELS.get(level, logging.INFO), "%s", message)

    async def metric(self, family: MetricFamilySpec, labels: dict[str, str], action: str, value: float) -> float:
        """Act on a custom metric."""
        return self._dataplane.custom_metrics.act(family, labels, action, value)


def _chosen(request: InferRequest, response: InferResponse) -> InferResponse:
    """Only the outputs that were asked for, in the order in which they were."""
    if request.requested_outputs and response.outputs:
        by_name = {tensor.name: tensor for tensor in response.outputs}
        response.outputs = [by_name[name] for name in request.requested_outputs if name in by_name]
    return response


def _tensor_metadata(tensor: ModelInput | ModelOutput, batch: bool) -> pb.ModelMetadataResponse.TensorMetadata:
    shape = [-1, *tensor.dims] if batch else list(tensor.dims)
    return pb.ModelMetadataResponse.TensorMetadata(name=tensor.name, datatype=v2_name(tensor.data_type), shape=shape)


def _labels(name: str, version: int, config: ModelConfig) -> dict[str, str]:
    tags = {f"_{key}": value for key, value in config.metric_tags.items()}
    return {"model": name, "version": str(version), **tags}


__all__ = ["DataPlane", "EXTENSIONS", "SERVER_NAME"]
