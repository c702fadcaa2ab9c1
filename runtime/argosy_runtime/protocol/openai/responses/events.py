"""Server-sent events, as OpenAI's clients read them."""

from typing import Final

from argosy_runtime.protocol.openai.errors import ApiError, encode_error

DONE: Final = b"data: [DONE]\n\n"
_PAD_TO: Final = 64


def event(payload: bytes) -> bytes:
    """Return an event with a JSON payload."""
    return b"data: " + payload + b"\n\n"


def error_event(error: ApiError) -> bytes:
    """Return the event that ends a stream which fails; clients raise it as an error."""
    return event(encode_error(error))


def padding(size: int) -> bytes:
    """Return the value of `obfuscation` for an event of `size` bytes: the sum is a multiple of 64."""
    return b"x" * (-size % _PAD_TO)
