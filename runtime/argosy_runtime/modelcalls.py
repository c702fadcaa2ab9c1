"""What running models may ask of the server (business logic scripting), answered as a client would be."""

import logging
from collections.abc import Mapping
from typing import Protocol

from tritonclient.grpc.model_config_pb2 import ModelConfig

from .backends.contract import ActOnMetric, IsModelReady, LoadModel, Log, ServerCall, UnloadModel
from .errors import ServingError, unavailable, unsupported
from .messages import Deliver, InferRequest, Submission
from .telemetry.custom import CustomMetrics

_log = logging.getLogger("argosy.model")
_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "verbose": logging.DEBUG}


class Server(Protocol):
    """What of the data plane models may use; its own docstrings say what each does."""

    def model_ready(self, name: str, version: str) -> bool: ...

    def model_config(self, name: str, version: str) -> ModelConfig: ...

    def submit_call(self, request: InferRequest, deliver: Deliver) -> Submission: ...

    async def load(
        self, name: str, config: str | None, files: Mapping[str, bytes], for_model: bool = False
    ) -> None: ...

    async def unload(self, name: str, unload_dependents: bool) -> None: ...

    @property
    def custom_metrics(self) -> CustomMetrics: ...


class ModelCalls:
    """The data plane as running models see it (`execution.calls.ServerCalls`)."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def infer(self, request: InferRequest, decoupled: bool, deliver: Deliver) -> Submission:
        """Every response. Raises ServingError, in Triton's words to a model, where the request may not enter."""
        name, version = request.model_name, request.model_version
        if not self._is_ready(name, version):
            raise unavailable(f"Failed for execute the inference request. Model '{name}' is not ready.")
        policy = self._server.model_config(name, version).model_transaction_policy
        if policy.decoupled and not decoupled:
            raise unsupported(
                f"Model {name} is using the decoupled. The current BLS request call doesn't support models using the "
                "decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' "
                "calls for decoupled models.'"
            )
        return self._server.submit_call(request, deliver)

    async def do(self, what: ServerCall, owner: int) -> bool | float | None:
        """As a client's request to load, unload, ask or log. Raises ServingError."""
        match what:
            case Log(level, message):
                _log.log(_LEVELS.get(level, logging.INFO), "%s", message)
            case ActOnMetric(family, labels, action, value):
                return self._server.custom_metrics.act(owner, family, labels, action, value)
            case IsModelReady(name, version):
                return self._is_ready(name, version)
            case LoadModel(name, config, files):
                await self._server.load(name, config, files, for_model=True)
            case UnloadModel(name, unload_dependents):
                await self._server.unload(name, unload_dependents)
        return None

    def forget(self, owner: int) -> None:
        """The metrics of an instance that is gone."""
        self._server.custom_metrics.forget(owner)

    def _is_ready(self, name: str, version: str) -> bool:
        try:
            return self._server.model_ready(name, version)
        except ServingError:
            return False
