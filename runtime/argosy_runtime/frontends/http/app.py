"""The HTTP front end: the V2 protocol with Triton's extensions, one table of routes."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from argosy_runtime.frontends.metrics import METRICS_PATH, MetricsApp
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import Api, Restrictions
from argosy_runtime.frontends.sockets import bind
from argosy_runtime.protocol.http.request import DEFAULT_MAX_INPUT_SIZE
from argosy_runtime.shared_memory.regions import RegionKind

from .generating import Generating
from .management import Management
from .openai.app import OpenAiApp, OpenAiOptions
from .request_template import InferEndpoint
from .routing import Routes
from .shared_memory import SharedMemory
from .wire.application import Answer, ByCoroutine, Fixed, Handler
from .wire.heads import Head
from .wire.listener import HttpListener
from .wire.reply import message_reply
from .wire.timeouts import Timeouts

PORT_FLAG = "--http-port"
OPENAI_PORT_FLAG = "--openai-port"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """Where and how to serve. Sizes are bytes; port 0 takes any free one.

    `openai`: serve OpenAI's API as well. `metrics`: answer /metrics as the metrics port does, since endpoint pickers
    read it where they send requests. `tls` None means plain text.
    """

    host: str = "0.0.0.0"
    port: int = 8000
    reuse_port: bool = False
    max_input_size: int = DEFAULT_MAX_INPUT_SIZE
    header_forward_pattern: str = ""
    restricted: Restrictions = field(default_factory=dict)
    timeouts: Timeouts = field(default_factory=Timeouts)
    openai: OpenAiOptions | None = None
    metrics: bool = True
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class _Endpoint:
    api: Api
    methods: frozenset[str]
    handler: Callable[..., Handler]


class HttpApp:
    """Finds the handler of requests by their head."""

    def __init__(self, plane: DataPlane, options: HttpOptions) -> None:
        limit = options.max_input_size
        self._restricted = options.restricted
        self._openai = None if options.openai is None else OpenAiApp(plane, options.openai)
        self._metrics = MetricsApp(plane) if options.metrics else None
        inference = InferEndpoint(plane, limit, options.header_forward_pattern)
        self._routes = Routes(
            _routes(inference, Generating(plane, limit), Management(plane, limit))
            + _shared_memory_routes(SharedMemory(plane, limit))
        )

    def handler(self, head: Head) -> Handler:
        if self._openai is not None and self._openai.owns(head.path):
            return self._openai.handler(head)
        if self._metrics is not None and head.path.removesuffix("/") == METRICS_PATH:
            return self._metrics.handler(head)
        route = self._routes.find(head.path)
        if route is None:
            return Fixed(message_reply(404, "Not Found"))
        endpoint, captures = route
        refused = refusal(self._restricted, endpoint.api, head)
        if refused is not None:
            return refused
        if head.method not in endpoint.methods:
            return Fixed(message_reply(405, "Method Not Allowed"))
        return endpoint.handler(head, *captures)


def refusal(restricted: Restrictions, api: Api, head: Head) -> Handler | None:
    """Return the handler that refuses a request without the header that a group needs; None where it may enter."""
    restriction = restricted.get(api)
    if restriction is None:
        return None
    value = head.headers.get(restriction.header.lower().encode())
    if restriction.allows(None if value is None else value.decode("latin-1")):
        return None
    return Fixed(message_reply(403, restriction.refusal("API")))


def _by(api: Api, methods: frozenset[str], answer: Answer) -> _Endpoint:
    """Return an endpoint answered by a coroutine function, which takes the context and what the path captures."""
    return _Endpoint(api, methods, lambda head, *captures: ByCoroutine(answer, captures))


_GET = frozenset(("GET",))
_POST = frozenset(("POST",))
_BOTH = _GET | _POST
_MODEL = "/v2/models/{model}"
_VERSION = "/v2/models/{model}/versions/{digits}"
_REPOSITORY = "/v2/repository"


def _routes(inference: InferEndpoint, generating: Generating, about: Management) -> list[tuple[str, _Endpoint]]:
    routes = [
        ("/v2", _by(Api.METADATA, _GET, about.server_metadata)),
        ("/v2/health/live", _by(Api.HEALTH, _GET, about.live)),
        ("/v2/health/ready", _by(Api.HEALTH, _GET, about.ready)),
        ("/v2/models/stats", _by(Api.STATISTICS, _GET, about.statistics)),
        ("/v2/logging", _by(Api.LOGGING, _BOTH, about.logging)),
        ("/v2/trace/setting", _by(Api.TRACE, _BOTH, about.trace)),
        (f"{_MODEL}/trace/setting", _by(Api.TRACE, _BOTH, about.trace)),
        (f"{_REPOSITORY}/index", _by(Api.MODEL_INDEX, _POST, about.index)),
        (f"{_REPOSITORY}/{{repository}}/index", _by(Api.MODEL_INDEX, _POST, about.index)),
    ]
    for action, handler in (("load", about.load), ("unload", about.unload)):
        path = f"models/{{model}}/{action}"
        named = _by(Api.MODEL_REPOSITORY, _POST, about.named_repository)
        routes.append((f"{_REPOSITORY}/{path}", _by(Api.MODEL_REPOSITORY, _POST, handler)))
        routes.append((f"{_REPOSITORY}/{{repository}}/{path}", named))
    for action, endpoint in (
        ("", _by(Api.METADATA, _GET, about.model_metadata)),
        ("/ready", _by(Api.HEALTH, _GET, about.model_ready)),
        ("/config", _by(Api.MODEL_CONFIG, _GET, about.model_config)),
        ("/stats", _by(Api.STATISTICS, _GET, about.statistics)),
        ("/infer", _Endpoint(Api.INFERENCE, _POST, inference.handler)),
        ("/generate", _by(Api.INFERENCE, _POST, generating.generate)),
        ("/generate_stream", _by(Api.INFERENCE, _POST, generating.generate_stream)),
    ):
        routes.append((f"{_MODEL}{action}", endpoint))
        routes.append((f"{_VERSION}{action}", endpoint))
    return routes


def _shared_memory_routes(regions: SharedMemory) -> list[tuple[str, _Endpoint]]:
    routes: list[tuple[str, _Endpoint]] = []
    for kind, register in ((RegionKind.SYSTEM, regions.register_system), (RegionKind.CUDA, regions.register_cuda)):
        for action, methods, answer in (
            ("status", _GET, partial(regions.status, kind=kind)),
            ("register", _POST, register),
            ("unregister", _POST, partial(regions.unregister, kind=kind)),
        ):
            endpoint = _by(Api.SHARED_MEMORY, methods, answer)
            routes.append((f"/v2/{kind}sharedmemory/{action}", endpoint))
            routes.append((f"/v2/{kind}sharedmemory/region/{{region}}/{action}", endpoint))
    return routes


async def serve(plane: DataPlane, options: HttpOptions) -> HttpListener:
    """Serve a data plane over HTTP; returns once connections are accepted. `stop` it in the end.

    Raises UNAVAILABLE, naming the flag, where the port cannot be had.
    """
    listening = bind(options.host, options.port, PORT_FLAG, options.reuse_port)
    listener = HttpListener(HttpApp(plane, options), listening, options.max_input_size, options.timeouts, options.tls)
    await listener.start()
    return listener


@dataclass(frozen=True, slots=True)
class OpenAiListen:
    """Where to serve OpenAI's API alone."""

    host: str
    port: int
    options: OpenAiOptions
    timeouts: Timeouts = field(default_factory=Timeouts)
    tls: ssl.SSLContext | None = None


async def serve_openai(plane: DataPlane, listen: OpenAiListen) -> HttpListener:
    """Serve OpenAI's API alone, on a port of its own. Otherwise as `serve`."""
    listening = bind(listen.host, listen.port, OPENAI_PORT_FLAG)
    app = OpenAiApp(plane, listen.options)
    listener = HttpListener(app, listening, listen.options.max_input_size, listen.timeouts, listen.tls)
    await listener.start()
    return listener
