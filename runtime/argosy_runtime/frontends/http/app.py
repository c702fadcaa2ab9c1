"""The HTTP front end: the V2 protocol with Triton's extensions, one table of routes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import Api, Restrictions
from argosy_runtime.frontends.sockets import bind
from argosy_runtime.protocol.http_request import DEFAULT_MAX_INPUT_SIZE

from . import compression
from .exchange import Call, Reply, error_reply, message_reply
from .inference import Inference
from .listener import HttpListener
from .management import Management
from .routing import Routes

PORT_FLAG = "--http-port"
Handler = Callable[..., Awaitable[Reply | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """Where and how to serve. Sizes are bytes; port 0 takes any free one."""

    host: str = "0.0.0.0"
    port: int = 8000
    reuse_port: bool = False
    max_input_size: int = DEFAULT_MAX_INPUT_SIZE
    header_forward_pattern: str = ""
    restricted: Restrictions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    api: Api
    methods: frozenset[str]
    handler: Handler


class HttpApp:
    """Finds who answers a request, and tells of errors."""

    def __init__(self, plane: DataPlane, options: HttpOptions) -> None:
        self._restricted = options.restricted
        inference = Inference(plane, options.max_input_size, options.header_forward_pattern)
        self._routes = Routes(_routes(inference, Management(plane, options.max_input_size)))

    async def __call__(self, call: Call) -> Reply | None:
        """Answer one request; None where it was answered as a stream."""
        try:
            return await self._answer(call)
        except ServingError as error:
            return _with_encodings(error)

    async def _answer(self, call: Call) -> Reply | None:
        found = self._routes.find(call.path)
        if found is None:
            return message_reply(404, "Not Found")
        endpoint, captures = found
        restriction = self._restricted.get(endpoint.api) if self._restricted else None
        if restriction is not None:
            given = call.header(restriction.header.lower().encode())
            if given != restriction.value:
                told = f"This API is restricted, expecting header '{restriction.header}'"
                return message_reply(403, told)
        if call.method not in endpoint.methods:
            return message_reply(405, "Method Not Allowed")
        return await endpoint.handler(call, *captures)


def _with_encodings(error: ServingError) -> Reply:
    reply = error_reply(error)
    if error.kind is ErrorKind.UNSUPPORTED and error.message == compression.UNKNOWN_TYPE:
        reply.headers = (*reply.headers, ("Accept-Encoding", compression.SUPPORTED))
    return reply


_GET = frozenset(("GET",))
_POST = frozenset(("POST",))
_BOTH = _GET | _POST
_MODEL = "/v2/models/{model}"
_VERSION = "/v2/models/{model}/versions/{digits}"
_REPOSITORY = "/v2/repository"


def _routes(inference: Inference, about: Management) -> list[tuple[str, _Endpoint]]:
    routes = [
        ("/v2", _Endpoint(Api.METADATA, _GET, about.server_metadata)),
        ("/v2/health/live", _Endpoint(Api.HEALTH, _GET, about.live)),
        ("/v2/health/ready", _Endpoint(Api.HEALTH, _GET, about.ready)),
        ("/v2/models/stats", _Endpoint(Api.STATISTICS, _GET, about.statistics)),
        ("/v2/logging", _Endpoint(Api.LOGGING, _BOTH, about.logging)),
        ("/v2/trace/setting", _Endpoint(Api.TRACE, _BOTH, about.no_trace)),
        (f"{_MODEL}/trace/setting", _Endpoint(Api.TRACE, _BOTH, about.no_trace)),
        (f"{_REPOSITORY}/index", _Endpoint(Api.MODEL_REPOSITORY, _POST, about.index)),
        (f"{_REPOSITORY}/{{repository}}/index", _Endpoint(Api.MODEL_REPOSITORY, _POST, about.index)),
    ]
    for action, handler in (("load", about.load), ("unload", about.unload)):
        path = f"models/{{model}}/{action}"
        named = _Endpoint(Api.MODEL_REPOSITORY, _POST, about.named_repository)
        routes.append((f"{_REPOSITORY}/{path}", _Endpoint(Api.MODEL_REPOSITORY, _POST, handler)))
        routes.append((f"{_REPOSITORY}/{{repository}}/{path}", named))
    for kind in ("system", "cuda"):
        for action, methods, answer in (
            ("status", _GET, about.shared_memory_status),
            ("register", _POST, about.no_shared_memory),
            ("unregister", _POST, about.shared_memory_unregister),
        ):
            endpoint = _Endpoint(Api.SHARED_MEMORY, methods, partial(answer, kind=kind))
            routes.append((f"/v2/{kind}sharedmemory/{action}", endpoint))
            routes.append((f"/v2/{kind}sharedmemory/region/{{region}}/{action}", endpoint))
    for action, endpoint in (
        ("", _Endpoint(Api.METADATA, _GET, about.model_metadata)),
        ("/ready", _Endpoint(Api.HEALTH, _GET, about.model_ready)),
        ("/config", _Endpoint(Api.MODEL_CONFIG, _GET, about.model_config)),
        ("/stats", _Endpoint(Api.STATISTICS, _GET, about.statistics)),
        ("/infer", _Endpoint(Api.INFERENCE, _POST, inference.infer)),
        ("/generate", _Endpoint(Api.INFERENCE, _POST, inference.generate)),
        ("/generate_stream", _Endpoint(Api.INFERENCE, _POST, inference.generate_stream)),
    ):
        routes.append((f"{_MODEL}{action}", endpoint))
        routes.append((f"{_VERSION}{action}", endpoint))
    return routes


async def serve(plane: DataPlane, options: HttpOptions) -> HttpListener:
    """Serve a data plane over HTTP; returns once connections are accepted. `stop` it in the end.

    Raises UNAVAILABLE, naming the flag, where the port cannot be had.
    """
    listening = bind(options.host, options.port, PORT_FLAG, options.reuse_port)
    listener = HttpListener(HttpApp(plane, options), listening, options.max_input_size)
    await listener.start()
    return listener
