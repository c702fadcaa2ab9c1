"""The endpoint of embeddings."""

import secrets

from argosy_runtime.frontends.http.wire.application import Handler
from argosy_runtime.frontends.http.wire.request_context import RequestContext
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.protocol.openai.embeddings import (
    EmbeddingAnswer,
    EmbeddingModel,
    EmbeddingReader,
    embedding_inferences,
)
from argosy_runtime.protocol.openai.models import EMBEDDINGS
from argosy_runtime.protocol.openai.names import EMBEDDING
from argosy_runtime.protocol.openai.requests.embedding import EmbeddingRequest, decode

from .catalog import Catalog, ServedName
from .endpoints import ModelEndpoint
from .generating import UnaryGeneration


class Embeddings:
    """Begins the answers of models that make embeddings: an inference request for each input."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane

    def embed(self, context: RequestContext, request: EmbeddingRequest, served: ServedName) -> None:
        """Answer with the embeddings of all inputs. Raises ApiError."""
        if not isinstance(served.model, EmbeddingModel):
            raise served.other_endpoint(EMBEDDINGS)
        identity = f"embd-{secrets.token_hex(12)}"
        inferences = embedding_inferences(served.model, request, identity)
        readers = [EmbeddingReader() for _ in inferences]
        answer = EmbeddingAnswer(request.model, request.encoding_format, readers)
        UnaryGeneration(self._plane, context, identity, readers, lambda: EMBEDDING, answer).start(inferences, request)


def embedding_handler(plane: DataPlane, catalog: Catalog, limit: int) -> Handler:
    """Return the handler of embeddings."""
    return ModelEndpoint(catalog, limit, decode, Embeddings(plane).embed)
