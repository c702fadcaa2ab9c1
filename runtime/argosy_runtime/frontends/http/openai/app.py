"""The application of OpenAI's API: one table of routes, the keys and restrictions before them, errors in its form."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.http.routing import Routes
from argosy_runtime.frontends.http.wire.application import Answer, Fixed, Handler
from argosy_runtime.frontends.http.wire.heads import Head
from argosy_runtime.frontends.http.wire.reply import Reply
from argosy_runtime.frontends.http.wire.request_context import RequestContext
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import Api, Restrictions
from argosy_runtime.protocol.http.request import DEFAULT_MAX_INPUT_SIZE
from argosy_runtime.protocol.openai.errors import ApiError, from_serving
from argosy_runtime.protocol.openai.models import CHAT_COMPLETIONS, COMPLETIONS, EMBEDDINGS, PREFIX, RESPONSES

from .catalog import Catalog
from .embedding import embedding_handler
from .endpoints import ModelEndpoints, generation_handlers
from .keyguard import KeyGuard
from .replies import error_reply, use_error_objects
from .response import response_handler

_HEALTH = "/health"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAiOptions:
    """What may be called, and by which clients. `guard`: the API keys that are required, None for none."""

    max_input_size: int = DEFAULT_MAX_INPUT_SIZE
    restricted: Restrictions = field(default_factory=dict)
    guard: KeyGuard | None = None


@dataclass(frozen=True, slots=True)
class _Route:
    """The handlers of a path by method. `api`: the group that it belongs to, in addition to that of this API."""

    api: Api
    methods: Mapping[str, "_Endpoint"]


class _Endpoint:
    """Makes the handler of a path's captures: itself a fixed one, or a coroutine function."""

    def __init__(self, handler: Handler | None = None, answer: Answer | None = None) -> None:
        self._handler = handler
        self._answer = answer

    def handler(self, captures: tuple[str, ...]) -> Handler:
        """Return the handler."""
        if self._handler is not None:
            return self._handler
        assert self._answer is not None
        return _ByCoroutine(self._answer, captures)


class _ByCoroutine:
    """Answers by a coroutine function; errors in OpenAI's form."""

    def __init__(self, answer: Answer, captures: tuple[str, ...]) -> None:
        self._answer = answer
        self._captures = captures

    def begin(self, context: RequestContext) -> None:
        context.run(self._run(context))

    async def _run(self, context: RequestContext) -> None:
        reply: Reply | None
        try:
            reply = await self._answer(context, *self._captures)
        except ApiError as error:
            reply = error_reply(error)
        except ServingError as error:
            reply = error_reply(from_serving(error))
        if reply is not None:
            context.reply(reply)


class _Guarded:
    """Checks the API key of each request before its handler: heads are cached longer than a key may be valid."""

    def __init__(self, guard: KeyGuard | None, handler: Handler) -> None:
        self._guard = guard
        self._handler = handler

    def begin(self, context: RequestContext) -> None:
        use_error_objects(context)
        if self._guard is not None:
            try:
                self._guard.keys.check(context.header(b"authorization"))
            except ApiError as error:
                context.reply(error_reply(error))
                return
        self._handler.begin(context)


class OpenAiApp:
    """Finds the handlers of requests to OpenAI's API by their head."""

    def __init__(self, plane: DataPlane, options: OpenAiOptions) -> None:
        self._restricted = options.restricted
        self._guard = options.guard
        routes = _routes(plane, options.max_input_size)
        self._routes = Routes(routes)
        self._paths = tuple(path for path, _ in routes if path != _HEALTH)

    def owns(self, path: str) -> bool:
        """Return whether a path is one of this API, or would be with its prefix."""
        return path.startswith(PREFIX + "/") or path in (PREFIX, _HEALTH) or self._lacks_prefix(path)

    def handler(self, head: Head) -> Handler:
        match = self._routes.find(head.path)
        if match is None:
            return Fixed(error_reply(self._unknown(head)))
        route, captures = match
        refusal = self._refusal(head, route.api)
        if refusal is not None:
            return Fixed(error_reply(refusal))
        endpoint = route.methods.get(head.method)
        if endpoint is None:
            message = f"Not allowed to {head.method} on {head.path}. It takes {' and '.join(route.methods)}."
            return Fixed(error_reply(ApiError(405, message, code="method_not_supported")))
        guard = None if route.api is Api.HEALTH else self._guard
        return _Guarded(guard, endpoint.handler(captures))

    def _unknown(self, head: Head) -> ApiError:
        """Return the error of a path that is none of this API."""
        if self._lacks_prefix(head.path):
            way = f"OpenAI's API is under {PREFIX}: set base_url to http://HOST:PORT{PREFIX}."
        else:
            way = f"There are {', '.join(self._paths)}."
        return ApiError(404, f"Unknown request URL: {head.method} {head.path}. {way}", code="unknown_url")

    def _lacks_prefix(self, path: str) -> bool:
        return PREFIX + path in self._paths

    def _refusal(self, head: Head, api: Api) -> ApiError | None:
        """Return why a client without a secret header may not use this group; None where it may.

        With API keys these stand in for the header of the group, but not for the one of this API.
        """
        groups = (Api.OPENAI,) if self._guard is not None and api is not Api.HEALTH else (Api.OPENAI, api)
        for group in groups:
            restriction = self._restricted.get(group)
            if restriction is None or (api is Api.HEALTH and group is Api.OPENAI):
                continue
            value = head.headers.get(restriction.header.lower().encode())
            if not restriction.allows(None if value is None else value.decode("latin-1")):
                return ApiError(403, restriction.refusal("API"), code="restricted")
        return None


def _routes(plane: DataPlane, limit: int) -> list[tuple[str, _Route]]:
    catalog = Catalog(plane, time.time)
    about = ModelEndpoints(plane, catalog)
    chat, completions = generation_handlers(plane, catalog, limit)
    health = _Route(Api.HEALTH, {"GET": _Endpoint(answer=about.health)})
    return [
        (f"{PREFIX}/health", health),
        (_HEALTH, health),
        (f"{PREFIX}/models", _Route(Api.MODEL_INDEX, {"GET": _Endpoint(answer=about.models)})),
        (f"{PREFIX}/models/{{model}}", _Route(Api.MODEL_INDEX, {"GET": _Endpoint(answer=about.model)})),
        (CHAT_COMPLETIONS, _Route(Api.INFERENCE, {"POST": _Endpoint(chat)})),
        (COMPLETIONS, _Route(Api.INFERENCE, {"POST": _Endpoint(completions)})),
        (
            EMBEDDINGS,
            _Route(Api.INFERENCE, {"POST": _Endpoint(embedding_handler(plane, catalog, limit))}),
        ),
        (
            RESPONSES,
            _Route(Api.INFERENCE, {"POST": _Endpoint(response_handler(plane, catalog, limit))}),
        ),
    ]
