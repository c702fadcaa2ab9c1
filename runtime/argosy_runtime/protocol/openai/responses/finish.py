"""Why a choice ended, by OpenAI's names."""

from typing import Final

from argosy_runtime.protocol.openai.errors import SERVER_ERROR, ApiError

_NAMES: Final = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "repetition": "stop",
}


def finish_reason(reason: str) -> str:
    """Return a model's reason by OpenAI's name. Raises ApiError where the engine has given the request up."""
    name = _NAMES.get(reason)
    if name is None:
        message = f"The engine ended the request before it was complete ({reason}): try again."
        raise ApiError(503, message, SERVER_ERROR, None, "generation_aborted", 1)
    return name
