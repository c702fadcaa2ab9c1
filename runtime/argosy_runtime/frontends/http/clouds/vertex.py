"""Vertex AI's port: a route for health and one for predictions, which a header may lead to other endpoints."""

import re
from dataclasses import dataclass
from typing import Final

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.frontends.http.wire.application import Application, Fixed, Handler
from argosy_runtime.frontends.http.wire.heads import Head
from argosy_runtime.frontends.http.wire.reply import empty_reply, error_reply
from argosy_runtime.frontends.port import DataPlane

from .heads import Later, v2_head

PORT_FLAG: Final = "--vertex-ai-port"
BINARY_TYPE: Final = "application/vnd.vertex-ai-triton.binary+json;json-header-size="
REDIRECT: Final = b"x-vertex-ai-triton-redirect"
_MODEL: Final = r"/v2/models/[^/]+(/versions/[0-9]+)?"
_READ: Final = re.compile(
    rf"/metrics|/v2|/v2/health/(live|ready)|/v2/models/stats|{_MODEL}(/ready|/config|/stats)?"
    r"|/v2/(system|cuda)sharedmemory(/region/[^/]+)?/status"
)
_POSTED: Final = re.compile(rf"{_MODEL}/infer|/v2/repository(/[^/]+)?/index")
_FORBIDDEN: Final = re.compile(
    r"/v2/(system|cuda)sharedmemory(/region/[^/]+)?/(un)?register|/v2/repository(/[^/]+)?/models/[^/]+/(un)?load"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VertexAiOptions:
    """The routes, and the model of predictions; without a name it is the only one that is loaded."""

    port: int
    predict_route: str
    health_route: str
    model: str = ""


class VertexAiApp:
    """The application of the port, over that of the V2 protocol."""

    def __init__(self, v2: Application, plane: DataPlane, options: VertexAiOptions) -> None:
        self._v2 = v2
        self._plane = plane
        self._options = options

    def handler(self, head: Head) -> Handler:
        if head.path == self._options.health_route:
            return self._translated(head, head.method, "/v2/health/ready")
        if head.path != self._options.predict_route:
            return Fixed(empty_reply(400))
        redirect = head.headers.get(REDIRECT)
        if redirect is not None:
            return self._redirected(head, f"/{redirect.decode('latin-1')}")
        if self._options.model:
            return self._translated(head, head.method, f"/v2/models/{self._options.model}/infer")
        return Later(head, self._predict)

    def _redirected(self, head: Head, path: str) -> Handler:
        if head.method != "POST":
            return Fixed(empty_reply(405))
        if _READ.fullmatch(path):
            return self._translated(head, "GET", path)
        if _POSTED.fullmatch(path):
            return self._translated(head, "POST", path)
        return Fixed(empty_reply(403 if _FORBIDDEN.fullmatch(path) else 400))

    async def _predict(self, head: Head) -> Handler:
        index = await self._plane.index(True)
        names = {model.name for model in index.models}
        if len(names) != 1:
            message = "Expect the model repository contains only a single model if default model is not specified"
            return Fixed(error_reply(invalid(message)))
        return self._translated(head, head.method, f"/v2/models/{names.pop()}/infer")

    def _translated(self, head: Head, method: str, path: str) -> Handler:
        try:
            return self._v2.handler(v2_head(head, method, path, BINARY_TYPE))
        except ServingError as error:
            return Fixed(error_reply(error))
