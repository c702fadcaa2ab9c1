"""Calls of running models to the server (business logic scripting), which answers as to a client."""

import logging

from argosy_runtime.backends.contract import ActOnMetric, IsModelReady, LoadModel, Log, ServerCall, UnloadModel
from argosy_runtime.errors import ServingError, unavailable, unsupported
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.ondemand.loads import OnDemandLoads
from argosy_runtime.repository.registry import Registry
from argosy_runtime.repository.serving.version import Destination
from argosy_runtime.telemetry.custom import CustomMetrics
from argosy_runtime.telemetry.tracing.tracer import Tracer

from .control import ModelControl
from .readiness import Readiness

_model_log = logging.getLogger("argosy.model")
_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "verbose": logging.DEBUG}


class ModelCalls:
    """The data plane for running models. `connect` it to the server's parts before any model is loaded."""

    _registry: Registry
    _on_demand: OnDemandLoads | None
    _control: ModelControl
    _readiness: Readiness
    _metrics: CustomMetrics

    def __init__(self, tracer: Tracer) -> None:
        self.requests = 0
        """The number of inference requests since the start, copies for a shadow not among them."""
        self._tracer = tracer

    def connect(
        self,
        registry: Registry,
        on_demand: OnDemandLoads | None,
        control: ModelControl,
        readiness: Readiness,
        metrics: CustomMetrics,
    ) -> None:
        """Let calls act on these, of which models are loaded that call."""
        self._registry = registry
        self._on_demand = on_demand
        self._control = control
        self._readiness = readiness
        self._metrics = metrics

    def infer(self, request: InferRequest, decoupled: bool, deliver: Deliver) -> Submission:
        """Start a request. Raises ServingError, with Triton's messages for models, where it may not enter."""
        name, route = request.model_name, self._registry.route
        self.requests += not request.is_shadow
        try:
            served = route(request)
        except ServingError as refusal:
            if self._on_demand is not None and self._on_demand.may_load(name):

                def enter(request: InferRequest, deliver: Deliver) -> Submission:
                    return self._enter(route(request), request, decoupled, deliver)

                return self._on_demand.submit(request, deliver, enter, refusal)
            raise unavailable(f"Failed for execute the inference request. Model '{name}' is not ready.") from None
        return self._enter(served, request, decoupled, deliver)

    def _enter(self, served: Destination, request: InferRequest, decoupled: bool, deliver: Deliver) -> Submission:
        if served.decoupled and not decoupled:
            raise unsupported(
                f"Model {request.model_name} is using the decoupled. The current BLS request call doesn't support "
                "models using the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or "
                "'async_exec' calls for decoupled models.'"
            )
        if request.trace is not None:
            request.trace = self._tracer.called(request.trace)
        return served.submit(request, deliver)

    async def do(self, what: ServerCall, owner: int) -> bool | float | None:
        """Load, unload, log, or change or look something up, as a client would. Raises ServingError."""
        match what:
            case Log(level, message):
                _model_log.log(_LEVELS.get(level, logging.INFO), "%s", message)
            case ActOnMetric(family, labels, action, value):
                return self._metrics.act(owner, family, labels, action, value)
            case IsModelReady(name, version):
                return await self._is_ready(name, version)
            case LoadModel(name, config, files):
                await self._control.load(name, config, files, for_model=True)
            case UnloadModel(name, unload_dependents):
                await self._control.unload(name, unload_dependents)
        return None

    def forget(self, owner: int) -> None:
        """Remove an instance that has ended from the owners of its metrics."""
        self._metrics.forget(owner)

    async def _is_ready(self, name: str, version: str) -> bool:
        if (check := self._readiness.check(name, version)) is not None:
            await check
        try:
            return self._readiness.ready(name, version)
        except ServingError:
            return False
