"""Replies of OpenAI's API, and how a request ends that fails."""

from typing import Final

from argosy_runtime.frontends.http.wire.reply import JSON_HEADERS, Headers, Reply
from argosy_runtime.frontends.http.wire.request_context import RequestContext
from argosy_runtime.protocol.openai.errors import SERVER_ERROR, ApiError, encode_error

REQUEST_ID: Final = "x-request-id"
EVENT_HEADERS: Final[Headers] = (("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache"))


def error_reply(error: ApiError) -> Reply:
    """Return the response of an error."""
    headers = list(JSON_HEADERS)
    if error.status == 401:
        headers.append(("WWW-Authenticate", "Bearer"))
    if error.retry_after:
        headers.append(("Retry-After", str(error.retry_after)))
    return Reply(error.status, (encode_error(error),), tuple(headers))


def interruption(status: int, message: str) -> ApiError:
    """Return the error of a request that the server cannot go on with."""
    return ApiError(status, message, SERVER_ERROR, retry_after=1 if status == 503 else 0)


def use_error_objects(context: RequestContext) -> None:
    """Have errors of the server itself answered in OpenAI's form."""
    context.interrupted = lambda status, message: context.reply(error_reply(interruption(status, message)))
