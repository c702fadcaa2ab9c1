"""GRPCInferenceService without inference: each method decodes, calls the data plane, encodes."""

from collections.abc import Mapping
from typing import Any

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import invalid, unsupported
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import Api
from argosy_runtime.modelconfig.parameters.traffic import PARAMETER as TRAFFIC
from argosy_runtime.protocol.grpc.request import canonical_version
from argosy_runtime.protocol.trace_settings import changes_of_grpc, settings_message
from argosy_runtime.telemetry.log_settings import KINDS, Setting

from .rpc.unary import Handler

Methods = dict[str, tuple[Api, Any, Handler]]
"""A method's name → its group of the API, the type of its request, its handler."""


class Management:
    """Handlers of requests that run no model."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane

    def methods(self) -> Methods:
        """Return all of them."""
        return {
            "ServerLive": (Api.HEALTH, pb.ServerLiveRequest, self._server_live),
            "ServerReady": (Api.HEALTH, pb.ServerReadyRequest, self._server_ready),
            "ModelReady": (Api.HEALTH, pb.ModelReadyRequest, self._model_ready),
            "ServerMetadata": (Api.METADATA, pb.ServerMetadataRequest, self._server_metadata),
            "ModelMetadata": (Api.METADATA, pb.ModelMetadataRequest, self._model_metadata),
            "ModelConfig": (Api.MODEL_CONFIG, pb.ModelConfigRequest, self._model_config),
            "ModelStatistics": (Api.STATISTICS, pb.ModelStatisticsRequest, self._statistics),
            "RepositoryIndex": (Api.MODEL_INDEX, pb.RepositoryIndexRequest, self._index),
            "RepositoryModelLoad": (Api.MODEL_REPOSITORY, pb.RepositoryModelLoadRequest, self._load),
            "RepositoryModelUnload": (Api.MODEL_REPOSITORY, pb.RepositoryModelUnloadRequest, self._unload),
            "TraceSetting": (Api.TRACE, pb.TraceSettingRequest, self._trace_settings),
            "LogSettings": (Api.LOGGING, pb.LogSettingsRequest, self._log_settings),
        }

    def _server_live(self, request: pb.ServerLiveRequest) -> pb.ServerLiveResponse:
        return pb.ServerLiveResponse(live=self._plane.live())

    async def _server_ready(self, request: pb.ServerReadyRequest) -> pb.ServerReadyResponse:
        if (check := self._plane.readiness_check()) is not None:
            await check
        return pb.ServerReadyResponse(ready=self._plane.ready())

    async def _model_ready(self, request: pb.ModelReadyRequest) -> pb.ModelReadyResponse:
        version = canonical_version(request.version)
        if (check := self._plane.readiness_check(request.name, version)) is not None:
            await check
        return pb.ModelReadyResponse(ready=self._plane.model_ready(request.name, version))

    def _server_metadata(self, request: pb.ServerMetadataRequest) -> pb.ServerMetadataResponse:
        return self._plane.server_metadata()

    async def _model_metadata(self, request: pb.ModelMetadataRequest) -> pb.ModelMetadataResponse:
        version = canonical_version(request.version)
        await self._plane.demand(request.name, version)
        return self._plane.model_metadata(request.name, version)

    async def _model_config(self, request: pb.ModelConfigRequest) -> pb.ModelConfigResponse:
        await self._plane.demand(request.name, canonical_version(request.version))
        config = self._plane.model_config(request.name, canonical_version(request.version))
        return pb.ModelConfigResponse(config=config)

    def _statistics(self, request: pb.ModelStatisticsRequest) -> pb.ModelStatisticsResponse:
        return self._plane.statistics(request.name, canonical_version(request.version))

    async def _index(self, request: pb.RepositoryIndexRequest) -> pb.RepositoryIndexResponse:
        _one_repository(request.repository_name)
        return await self._plane.index(request.ready)

    async def _load(self, request: pb.RepositoryModelLoadRequest) -> pb.RepositoryModelLoadResponse:
        _one_repository(request.repository_name)
        config: str | None = None
        files: dict[str, bytes] = {}
        if set(request.parameters) == {TRAFFIC} and request.parameters[TRAFFIC].bool_param:
            await self._plane.divide(request.model_name)
            return pb.RepositoryModelLoadResponse()
        for name, parameter in request.parameters.items():
            if name == "config":
                config = _load_parameter(name, parameter, "string_param")
            elif name.startswith("file:"):
                files[name] = _load_parameter(name, parameter, "bytes_param")
            else:
                raise invalid(f"unrecognized load parameter '{name}'.")
        await self._plane.load(request.model_name, config, files)
        return pb.RepositoryModelLoadResponse()

    async def _unload(self, request: pb.RepositoryModelUnloadRequest) -> pb.RepositoryModelUnloadResponse:
        _one_repository(request.repository_name)
        dependents = False
        if "unload_dependents" in request.parameters:
            parameter = request.parameters["unload_dependents"]
            if parameter.WhichOneof("parameter_choice") != "bool_param":
                raise invalid("invalid value type for 'unload_dependents' parameter, expected bool_param.")
            dependents = parameter.bool_param
        await self._plane.unload(request.model_name, dependents)
        return pb.RepositoryModelUnloadResponse()

    def _trace_settings(self, request: pb.TraceSettingRequest) -> pb.TraceSettingResponse:
        settings = self._plane.trace_settings(request.model_name)
        if request.settings:
            self._plane.change_trace_settings(request.model_name, changes_of_grpc(request.settings))
            settings = self._plane.trace_settings(request.model_name)
        return settings_message(settings)

    def _log_settings(self, request: pb.LogSettingsRequest) -> pb.LogSettingsResponse:
        if request.settings:
            self._plane.change_log_settings(_changes(request))
        return _settings_message(self._plane.log_settings())


def _one_repository(name: str) -> None:
    if name:
        raise unsupported("'repository_name' specification is not supported")


def _load_parameter(name: str, parameter: pb.ModelRepositoryParameter, kind: str) -> Any:
    if parameter.WhichOneof("parameter_choice") != kind:
        raise invalid(f"invalid value type for load parameter '{name}', expected {kind}.")
    return getattr(parameter, kind)


_SETTING_FIELDS: Mapping[type, tuple[str, str]] = {
    bool: ("bool_param", "boolean"),
    int: ("uint32_param", "int32"),
    str: ("string_param", "string"),
}
"""A setting's type → its field, and Triton's name of the type."""


def _changes(request: pb.LogSettingsRequest) -> dict[str, Setting]:
    """Return the requested changes, those of unknown names too. Raises INVALID_ARG for a value of the wrong type."""
    changes: dict[str, Setting] = {}
    for name, value in request.settings.items():
        kind = value.WhichOneof("parameter_choice")
        field, called = _SETTING_FIELDS[KINDS[name]] if name in KINDS else (kind, "")
        if kind != field:
            raise invalid(f"expect {called} for '{name}'")
        changes[name] = getattr(value, field) if field else ""
    return changes


def _settings_message(settings: Mapping[str, Setting]) -> pb.LogSettingsResponse:
    """Return all settings."""
    response = pb.LogSettingsResponse()
    for name, value in settings.items():
        field, _ = _SETTING_FIELDS[type(value)]
        setattr(response.settings[name], field, value)
    return response
