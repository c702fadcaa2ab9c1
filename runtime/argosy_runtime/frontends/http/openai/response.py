"""The endpoint of responses."""

import secrets
import time
from collections.abc import Callable
from functools import partial

from argosy_runtime.frontends.http.wire.application import Handler
from argosy_runtime.frontends.http.wire.request_context import RequestContext
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.protocol.openai.chat_generation import ChatGeneration
from argosy_runtime.protocol.openai.embeddings import EmbeddingModel
from argosy_runtime.protocol.openai.errors import ApiError
from argosy_runtime.protocol.openai.models import RESPONSES
from argosy_runtime.protocol.openai.names import response_names
from argosy_runtime.protocol.openai.requests.response import ResponseRequest, decode
from argosy_runtime.protocol.openai.stateless.answers import Response, ResponseAnswer, ResponseEvents
from argosy_runtime.protocol.openai.stateless.conversion import chat_request

from .catalog import Catalog, ServedName
from .endpoints import ModelEndpoint
from .generating import StreamedGeneration, UnaryGeneration


class StreamedResponse(StreamedGeneration[ResponseEvents]):
    """A response that is sent as events. One that fails on its way ends with the event `response.failed`."""

    def _answer_error(self, error: ApiError) -> None:
        if self._context.started and not self._context.answered:
            self._context.push(self._output.failed(error))
            self._context.end()
        else:
            super()._answer_error(error)


class Responses:
    """Begins responses."""

    def __init__(self, plane: DataPlane, now: Callable[[], float] = time.time) -> None:
        self._plane = plane
        self._now = now

    def respond(self, context: RequestContext, request: ResponseRequest, served: ServedName) -> None:
        """Answer a request for a response. Raises ApiError."""
        identity = f"resp_{secrets.token_hex(24)}"
        names = partial(response_names, request)
        if isinstance(served.model, EmbeddingModel):
            raise served.other_endpoint(RESPONSES)
        chat = ChatGeneration.begin(served.model, chat_request(request), identity, names)
        response = Response(identity, int(self._now()), request, chat.reader, chat.tools)
        generation: StreamedResponse | UnaryGeneration
        if request.streams:
            events = ResponseEvents(response, request.obfuscates)
            generation = StreamedResponse(self._plane, context, identity, [chat.reader], names, events)
        else:
            answer = ResponseAnswer(response)
            generation = UnaryGeneration(self._plane, context, identity, [chat.reader], names, answer)
        generation.start([chat.inference], request)


def response_handler(plane: DataPlane, catalog: Catalog, limit: int) -> Handler:
    """Return the handler of responses."""
    return ModelEndpoint(catalog, limit, decode, Responses(plane).respond)
