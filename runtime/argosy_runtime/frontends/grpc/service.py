"""The servicers of the gRPC front end: decode, delegate, encode."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from argosy_runtime.errors import DecoupledModelError, ErrorKind, ServingError, invalid, unsupported
from argosy_runtime.frontends.http.management import no_shared_memory, no_such_region
from argosy_runtime.frontends.model_lookup import lazy_view
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import Api, Restrictions, cannot_forward
from argosy_runtime.messages import InferRequest
from argosy_runtime.protocol import grpc_request, grpc_response
from argosy_runtime.protocol.model_version import canonical
from argosy_runtime.response_stream import single_response

from . import settings
from .stream import StreamSession

STATUS: dict[ErrorKind, grpc.StatusCode] = {
    ErrorKind.UNKNOWN: grpc.StatusCode.UNKNOWN,
    ErrorKind.INTERNAL: grpc.StatusCode.INTERNAL,
    ErrorKind.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorKind.INVALID_ARG: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorKind.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    ErrorKind.UNSUPPORTED: grpc.StatusCode.UNIMPLEMENTED,
    ErrorKind.ALREADY_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    ErrorKind.CANCELLED: grpc.StatusCode.CANCELLED,
}
ERROR_CLOSES_STREAM = "triton_grpc_error"

Context = Any
Answer = TypeVar("Answer")
Method = Callable[[Any, Any, Context], Awaitable[Answer]]


async def abort(context: Context, error: ServingError) -> NoReturn:
    """End a call with the status of an error."""
    await context.abort(STATUS[error.kind], error.message)
    raise AssertionError("abort returned")


def _guarded(api: Api) -> Callable[[Method[Answer]], Method[Answer]]:
    """A unary method of one group of the API: checks its restriction, and turns errors into statuses."""

    def decorate(method: Method[Answer]) -> Method[Answer]:
        @wraps(method)
        async def call(self: Any, request: Any, context: Context) -> Answer:
            try:
                if self.restricted:
                    check_restriction(self.restricted, api, context)
                return await method(self, request, context)
            except ServingError as error:
                await abort(context, error)

        return call

    return decorate


def check_restriction(restricted: Restrictions, api: Api, context: Context) -> None:
    """Raise UNAVAILABLE unless the call has the header that its group of the API asks for."""
    restriction = restricted.get(api)
    if restriction is None:
        return
    name = restriction.header.lower()
    if not any(key == name and value == restriction.value for key, value in context.invocation_metadata()):
        raise ServingError(
            ErrorKind.UNAVAILABLE, f"This protocol is restricted, expecting header '{restriction.header}'"
        )


class InferenceService(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """GRPCInferenceService over a data plane."""

    def __init__(self, plane: DataPlane, forward_pattern: str, restricted: Restrictions) -> None:
        self._plane = plane
        self._forward = re.compile(forward_pattern, re.IGNORECASE) if forward_pattern else None
        self.restricted = restricted

    @_guarded(Api.HEALTH)
    async def ServerLive(self, request: pb.ServerLiveRequest, context: Context) -> pb.ServerLiveResponse:  # noqa: N802
        return pb.ServerLiveResponse(live=self._plane.live())

    @_guarded(Api.HEALTH)
    async def ServerReady(self, request: pb.ServerReadyRequest, context: Context) -> pb.ServerReadyResponse:  # noqa: N802
        return pb.ServerReadyResponse(ready=self._plane.ready())

    @_guarded(Api.HEALTH)
    async def ModelReady(self, request: pb.ModelReadyRequest, context: Context) -> pb.ModelReadyResponse:  # noqa: N802
        ready = self._plane.model_ready(request.name, canonical(request.version))
        return pb.ModelReadyResponse(ready=ready)

    @_guarded(Api.METADATA)
    async def ServerMetadata(  # noqa: N802
        self, request: pb.ServerMetadataRequest, context: Context
    ) -> pb.ServerMetadataResponse:
        return self._plane.server_metadata()

    @_guarded(Api.METADATA)
    async def ModelMetadata(  # noqa: N802
        self, request: pb.ModelMetadataRequest, context: Context
    ) -> pb.ModelMetadataResponse:
        return self._plane.model_metadata(request.name, canonical(request.version))

    @_guarded(Api.MODEL_CONFIG)
    async def ModelConfig(self, request: pb.ModelConfigRequest, context: Context) -> pb.ModelConfigResponse:  # noqa: N802
        config = self._plane.model_config(request.name, canonical(request.version))
        return pb.ModelConfigResponse(config=config)

    @_guarded(Api.STATISTICS)
    async def ModelStatistics(  # noqa: N802
        self, request: pb.ModelStatisticsRequest, context: Context
    ) -> pb.ModelStatisticsResponse:
        return self._plane.statistics(request.name, canonical(request.version))

    @_guarded(Api.MODEL_REPOSITORY)
    async def RepositoryIndex(  # noqa: N802
        self, request: pb.RepositoryIndexRequest, context: Context
    ) -> pb.RepositoryIndexResponse:
        _one_repository(request.repository_name)
        return await self._plane.index(request.ready)

    @_guarded(Api.MODEL_REPOSITORY)
    async def RepositoryModelLoad(  # noqa: N802
        self, request: pb.RepositoryModelLoadRequest, context: Context
    ) -> pb.RepositoryModelLoadResponse:
        _one_repository(request.repository_name)
        config: str | None = None
        files: dict[str, bytes] = {}
        for name, parameter in request.parameters.items():
            if name == "config":
                config = _load_parameter(name, parameter, "string_param")
            elif name.startswith("file:"):
                files[name] = _load_parameter(name, parameter, "bytes_param")
            else:
                raise invalid(f"unrecognized load parameter '{name}'.")
        await self._plane.load(request.model_name, config, files)
        return pb.RepositoryModelLoadResponse()

    @_guarded(Api.MODEL_REPOSITORY)
    async def RepositoryModelUnload(  # noqa: N802
        self, request: pb.RepositoryModelUnloadRequest, context: Context
    ) -> pb.RepositoryModelUnloadResponse:
        _one_repository(request.repository_name)
        dependents = False
        if "unload_dependents" in request.parameters:
            parameter = request.parameters["unload_dependents"]
            if parameter.WhichOneof("parameter_choice") != "bool_param":
                raise invalid("invalid value type for 'unload_dependents' parameter, expected bool_param.")
            dependents = parameter.bool_param
        await self._plane.unload(request.model_name, dependents)
        return pb.RepositoryModelUnloadResponse()

    @_guarded(Api.INFERENCE)
    async def ModelInfer(self, request: pb.ModelInferRequest, context: Context) -> pb.ModelInferResponse:  # noqa: N802
        if request.model_version:
            request.model_version = canonical(request.model_version)
        try:
            decoded, options = grpc_request.decode(request)
            self._forward_headers(decoded, context)
            response = await single_response(self._plane.submit, decoded)
        except DecoupledModelError as error:
            raise unsupported(f"{grpc_request.ENDPOINT} {error.message}") from None
        except ServingError:
            # A model that is not there is told before what is wrong with the request to it.
            self._plane.model_config(request.model_name, request.model_version)
            raise
        if response.error is not None:
            raise response.error
        view = lazy_view(self._plane, decoded.model_name, decoded.model_version)
        return grpc_response.encode(response, options.classes, view)

    async def ModelStreamInfer(  # noqa: N802
        self, request_iterator: AsyncIterator[pb.ModelInferRequest], context: Context
    ) -> AsyncIterator[pb.ModelStreamInferResponse]:
        """Answer requests as they come. Errors travel in responses, unless wanted as the call's status."""
        metadata = context.invocation_metadata()
        errors_close = any(key == ERROR_CLOSES_STREAM and value == "true" for key, value in metadata)
        session = StreamSession(self._plane, lambda request: self._forward_headers(request, context), errors_close)
        try:
            check_restriction(self.restricted, Api.INFERENCE, context)
            async for response in session.run(request_iterator):
                yield response
        except ServingError as error:
            await abort(context, error)

    def _forward_headers(self, request: InferRequest, context: Context) -> None:
        if self._forward is None:
            return
        for name, value in context.invocation_metadata():
            if self._forward.search(name):
                refusal = cannot_forward(name)
                if refusal:
                    raise invalid(refusal)
                request.parameters[name] = value if isinstance(value, str) else value.decode("latin-1")

    @_guarded(Api.TRACE)
    async def TraceSetting(  # noqa: N802
        self, request: pb.TraceSettingRequest, context: Context
    ) -> pb.TraceSettingResponse:
        raise unsupported("trace settings are not supported over gRPC by this server")

    @_guarded(Api.LOGGING)
    async def LogSettings(self, request: pb.LogSettingsRequest, context: Context) -> pb.LogSettingsResponse:  # noqa: N802
        if request.settings:
            self._plane.change_log_settings(settings.decode(request))
        return settings.encode(self._plane.log_settings())

    @_guarded(Api.SHARED_MEMORY)
    async def SystemSharedMemoryStatus(  # noqa: N802
        self, request: pb.SystemSharedMemoryStatusRequest, context: Context
    ) -> pb.SystemSharedMemoryStatusResponse:
        _no_region("system", request.name)
        return pb.SystemSharedMemoryStatusResponse()

    @_guarded(Api.SHARED_MEMORY)
    async def CudaSharedMemoryStatus(  # noqa: N802
        self, request: pb.CudaSharedMemoryStatusRequest, context: Context
    ) -> pb.CudaSharedMemoryStatusResponse:
        _no_region("cuda", request.name)
        return pb.CudaSharedMemoryStatusResponse()

    @_guarded(Api.SHARED_MEMORY)
    async def SystemSharedMemoryUnregister(  # noqa: N802
        self, request: pb.SystemSharedMemoryUnregisterRequest, context: Context
    ) -> pb.SystemSharedMemoryUnregisterResponse:
        return pb.SystemSharedMemoryUnregisterResponse()

    @_guarded(Api.SHARED_MEMORY)
    async def CudaSharedMemoryUnregister(  # noqa: N802
        self, request: pb.CudaSharedMemoryUnregisterRequest, context: Context
    ) -> pb.CudaSharedMemoryUnregisterResponse:
        return pb.CudaSharedMemoryUnregisterResponse()

    @_guarded(Api.SHARED_MEMORY)
    async def _no_shared_memory(self, request: Any, context: Context) -> NoReturn:
        raise no_shared_memory()

    SystemSharedMemoryRegister = _no_shared_memory
    CudaSharedMemoryRegister = _no_shared_memory


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """grpc.health.v1: serving while the server is ready, whatever service is asked for."""

    def __init__(self, plane: DataPlane, restricted: Restrictions) -> None:
        self._plane = plane
        self.restricted = restricted

    @_guarded(Api.HEALTH)
    async def Check(  # noqa: N802
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        status = health_pb2.HealthCheckResponse
        ready = self._plane.ready()
        return health_pb2.HealthCheckResponse(status=status.SERVING if ready else status.NOT_SERVING)


def _no_region(kind: str, name: str) -> None:
    """All regions there are, none, can be told of; no single one can."""
    if name:
        raise no_such_region(kind, name)


def _one_repository(name: str) -> None:
    if name:
        raise unsupported("'repository_name' specification is not supported")


def _load_parameter(name: str, parameter: pb.ModelRepositoryParameter, kind: str) -> Any:
    if parameter.WhichOneof("parameter_choice") != kind:
        raise invalid(f"invalid value type for load parameter '{name}', expected {kind}.")
    return getattr(parameter, kind)
