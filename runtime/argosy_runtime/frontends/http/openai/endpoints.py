"""The endpoints of models that generate text, and those about models."""

import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from argosy_runtime.frontends.http import compression
from argosy_runtime.frontends.http.wire.application import Handler
from argosy_runtime.frontends.http.wire.reply import Reply, json_reply
from argosy_runtime.frontends.http.wire.request_context import RequestContext
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.language import ResponseReader
from argosy_runtime.protocol.openai.chat_generation import ChatGeneration
from argosy_runtime.protocol.openai.embeddings import EmbeddingModel
from argosy_runtime.protocol.openai.errors import SERVER_ERROR, ApiError
from argosy_runtime.protocol.openai.generation import (
    LanguageModel,
    completion_inferences,
    repeats_prompt,
)
from argosy_runtime.protocol.openai.models import CHAT_COMPLETIONS, COMPLETIONS, encode_model, encode_models
from argosy_runtime.protocol.openai.names import chat_names, completion_names
from argosy_runtime.protocol.openai.requests import chat as chat_body
from argosy_runtime.protocol.openai.requests import completion as completion_body
from argosy_runtime.protocol.openai.requests.chat import ChatRequest
from argosy_runtime.protocol.openai.requests.completion import CompletionRequest
from argosy_runtime.protocol.openai.requests.embedding import EmbeddingRequest
from argosy_runtime.protocol.openai.requests.fields import GenerationFields
from argosy_runtime.protocol.openai.requests.response import ResponseRequest
from argosy_runtime.protocol.openai.responses.completion import CompletionAnswer, CompletionOptions, CompletionStream
from argosy_runtime.protocol.openai.responses.head import AnswerHead
from argosy_runtime.tensors import Data

from .catalog import Catalog, ServedName
from .generating import Events, StreamedGeneration, UnaryGeneration
from .replies import error_reply

Fields = TypeVar("Fields", bound=GenerationFields | EmbeddingRequest | ResponseRequest)


def body_of(context: RequestContext, limit: int) -> Data:
    """Return the body of a request of at most `limit` bytes. Raises ApiError."""
    if context.size > limit:
        message = f"The request of {context.size} bytes is longer than the {limit} that --http-max-input-size allows."
        raise ApiError(413, message, code="request_too_large")
    if not compression.is_identity(context.header(b"content-encoding")):
        raise ApiError(415, "Unsupported content-encoding, only 'identity' is supported.", code="unsupported_encoding")
    return context.body(limit)


class ModelEndpoint(Generic[Fields]):
    """Handles requests to models. `decode` reads a body, `start` begins the answer of a known model."""

    def __init__(
        self,
        catalog: Catalog,
        limit: int,
        decode: Callable[[Data], Fields],
        start: Callable[[RequestContext, Fields, ServedName], None],
    ) -> None:
        self._catalog = catalog
        self._limit = limit
        self._decode = decode
        self._start = start

    def begin(self, context: RequestContext) -> None:
        try:
            request = self._decode(body_of(context, self._limit))
            served = self._catalog.find(request.model)
            if served is None:
                context.run(self._begin_unknown(context, request))
            else:
                self._start(context, request, served)
        except ApiError as error:
            context.reply(error_reply(error))

    async def _begin_unknown(self, context: RequestContext, request: Fields) -> None:
        """Answer a request for a model that this API cannot address, with the reason."""
        try:
            self._start(context, request, await self._catalog.look_up(request.model))
        except ApiError as error:
            context.reply(error_reply(error))


class Generations:
    """Begins the answers of language models."""

    def __init__(self, plane: DataPlane, now: Callable[[], float] = time.time) -> None:
        self._plane = plane
        self._now = now

    def chat(self, context: RequestContext, request: ChatRequest, served: ServedName) -> None:
        """Answer a chat. Raises ApiError."""
        head = self._head("chatcmpl", request, served, "" if request.service_tier is None else "default")
        names = partial(chat_names, request)
        if isinstance(served.model, EmbeddingModel):
            raise served.other_endpoint(CHAT_COMPLETIONS)
        chat = ChatGeneration.begin(served.model, request, head.id, names)
        generation: UnaryGeneration | StreamedGeneration[Events]
        if request.streams:
            events = chat.events(head)
            generation = StreamedGeneration(self._plane, context, head.id, [chat.reader], names, events)
        else:
            answer = chat.answer(head)
            generation = UnaryGeneration(self._plane, context, head.id, [chat.reader], names, answer)
        generation.start([chat.inference], request)

    def complete(self, context: RequestContext, request: CompletionRequest, served: ServedName) -> None:
        """Continue prompts. Raises ApiError."""
        head = self._head("cmpl", request, served)
        if not isinstance(served.model, LanguageModel):
            raise served.other_endpoint(COMPLETIONS)
        inferences = completion_inferences(served.model, request, head.id)
        readers: Sequence[ResponseReader] = [ResponseReader() for _ in inferences]
        options = _options(request)
        names = partial(completion_names, request)
        generation: UnaryGeneration | StreamedGeneration[Events]
        if request.streams:
            events = CompletionStream(head, readers, options, request.include_usage, request.obfuscates)
            generation = StreamedGeneration(self._plane, context, head.id, readers, names, events)
        else:
            answer = CompletionAnswer(head, readers, options)
            generation = UnaryGeneration(self._plane, context, head.id, readers, names, answer)
        generation.start(inferences, request)

    def _head(self, kind: str, request: GenerationFields, served: ServedName, tier: str = "") -> AnswerHead:
        identity = f"{kind}-{secrets.token_hex(12)}"
        return AnswerHead(identity, int(self._now()), request.model, served.named.fingerprint, tier)


def _options(request: CompletionRequest) -> CompletionOptions:
    echoes = [
        prompt if isinstance(prompt, str) and request.echo and not repeats_prompt(request, prompt) else ""
        for prompt in request.prompts()
    ]
    shown = request.n or 1
    best = shown if request.candidates > shown else 0
    return CompletionOptions(echoes, request.candidates, request.logprobs, bool(request.echo), best)


class ModelEndpoints:
    """Answers what models there are, and whether the server is ready."""

    def __init__(self, plane: DataPlane, catalog: Catalog) -> None:
        self._plane = plane
        self._catalog = catalog

    async def models(self, context: RequestContext) -> Reply:
        """Return all models that can be named."""
        names = await self._catalog.all()
        return json_reply(encode_models((served.named, served.created) for served in names))

    async def model(self, context: RequestContext, name: str) -> Reply:
        """Return one model."""
        try:
            served = await self._catalog.look_up(name)
        except ApiError as error:
            return error_reply(error)
        return json_reply(encode_model(served.named, served.created))

    async def health(self, context: RequestContext) -> Reply:
        """Return 200 when the server is ready, else 503."""
        if (check := self._plane.readiness_check()) is not None:
            await check
        if self._plane.ready():
            return json_reply(b'{"status":"ok"}')
        message = "The server is not ready: models are being loaded or unloaded, or it ends."
        return error_reply(ApiError(503, message, SERVER_ERROR, code="not_ready", retry_after=1))


def generation_handlers(plane: DataPlane, catalog: Catalog, limit: int) -> tuple[Handler, Handler]:
    """Return the handlers of chat completions and of completions."""
    generations = Generations(plane)
    return (
        ModelEndpoint(catalog, limit, chat_body.decode, generations.chat),
        ModelEndpoint(catalog, limit, completion_body.decode, generations.complete),
    )
