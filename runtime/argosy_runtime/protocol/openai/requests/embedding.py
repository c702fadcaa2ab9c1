"""The body of a request to /v1/embeddings."""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.json import Decoder

from argosy_runtime.protocol.openai.errors import invalid
from argosy_runtime.protocol.openai.validation import decode as decode_fields
from argosy_runtime.tensors import Data

from .fields import Positive, Text

MOST_INPUTS = 2048
Token = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Input = str | list[int]
"""A text, or its tokens."""


class EmbeddingRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A request for the embeddings of texts."""

    model: Text
    input: str | Annotated[list[str | Token | list[Token]], Meta(min_length=1)]
    dimensions: Positive | None = None
    encoding_format: Literal["float", "base64"] = "float"
    user: str | None = None

    @property
    def inputs(self) -> list[Input]:
        """The texts, and the lists of tokens, to embed."""
        if isinstance(self.input, str):
            return [self.input]
        if isinstance(self.input[0], int):
            return [[token for token in self.input if isinstance(token, int)]]
        return [item for item in self.input if not isinstance(item, int)]


_DECODER = Decoder(EmbeddingRequest)


def decode(body: Data) -> EmbeddingRequest:
    """Return the request in a body. Raises ApiError."""
    request = decode_fields(_DECODER, body)
    if isinstance(request.input, list):
        kinds = {type(item) for item in request.input}
        if len(kinds) > 1:
            message = "Invalid 'input': expected strings alone, tokens alone, or arrays of tokens alone."
            raise invalid(message, "input", "invalid_type")
    inputs = request.inputs
    if len(inputs) > MOST_INPUTS:
        message = f"Invalid 'input': array too long. Expected at most {MOST_INPUTS} inputs, but got {len(inputs)}."
        raise invalid(message, "input", "array_above_max_length")
    for item in inputs:
        if not item:
            raise invalid("Invalid 'input': an empty text has no embedding.", "input", "invalid_value")
    return request
