"""Errors in OpenAI's form: an object with message, type, param and code, and the HTTP status that goes with them."""

import re
from typing import Final

import orjson

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError

INVALID_REQUEST: Final = "invalid_request_error"
SERVER_ERROR: Final = "server_error"
_RETRY_AFTER_S: Final = 1
_TOO_LONG: Final = "maximum context length is"


class ApiError(Exception):
    """An error that clients of OpenAI's API read. `retry_after`: seconds after which to try again, 0 for no advice."""

    def __init__(
        self,
        status: int,
        message: str,
        kind: str = INVALID_REQUEST,
        param: str | None = None,
        code: str | None = None,
        retry_after: int = 0,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.param = param
        self.code = code
        self.retry_after = retry_after


def invalid(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """Return the error of a request that its client can correct."""
    return ApiError(400, message, param=param, code=code)


def unknown_model(name: str) -> ApiError:
    """Return the error of a model that this server does not have."""
    message = (
        f"The model '{name}' does not exist or cannot answer this kind of request: GET /v1/models lists those that can."
    )
    return ApiError(404, message, param="model", code="model_not_found")


def loading_model(name: str) -> ApiError:
    """Return the error of a model that is being loaded."""
    message = f"The model '{name}' is being loaded: try again in a while."
    return ApiError(503, message, SERVER_ERROR, "model", "model_loading", _RETRY_AFTER_S)


def failed_model(name: str, reason: str) -> ApiError:
    """Return the error of a model that this server has, but could not load for this reason."""
    message = f"The model '{name}' has no version that is ready: {reason}"
    return ApiError(503, message, SERVER_ERROR, "model", "model_not_ready", _RETRY_AFTER_S)


def encode_error(error: ApiError) -> bytes:
    """Return the JSON of an error."""
    fields = {"message": error.message, "type": error.kind, "param": error.param, "code": error.code}
    return orjson.dumps({"error": fields})


_STATUS: Final[dict[ErrorKind, tuple[int, str, str | None]]] = {
    ErrorKind.INVALID_ARG: (400, INVALID_REQUEST, None),
    ErrorKind.UNSUPPORTED: (400, INVALID_REQUEST, "unsupported"),
    ErrorKind.ALREADY_EXISTS: (400, INVALID_REQUEST, None),
    ErrorKind.NOT_FOUND: (404, INVALID_REQUEST, "model_not_found"),
    ErrorKind.UNAVAILABLE: (503, SERVER_ERROR, "service_unavailable"),
    ErrorKind.CANCELLED: (503, SERVER_ERROR, "request_cancelled"),
    ErrorKind.INTERNAL: (500, SERVER_ERROR, None),
    ErrorKind.UNKNOWN: (500, SERVER_ERROR, None),
}
"""Status, type and code of serving errors."""

_PARAMETER: Final = re.compile(r"sampling_parameters: '(\w+)'")
_LACKING: Final = re.compile(r"has no '(\w+)'; leave it out")
"""How language models name a parameter in their messages: one that is wrong, one that the engine lacks."""


def from_serving(error: ServingError, prompt: str = "messages") -> ApiError:
    """Return a serving error in OpenAI's form. `prompt` names the parameter at fault where the prompt is too long."""
    if error.reason is FailureReason.REJECTED:
        message = f"{error.message}. The model's queue is full: try again later."
        return ApiError(429, message, "rate_limit_error", None, "rate_limit_exceeded", _RETRY_AFTER_S)
    status, kind, code = _STATUS[error.kind]
    if status == 400 and _TOO_LONG in error.message:
        return ApiError(400, error.message, kind, prompt, "context_length_exceeded")
    if status == 400 and (named := _PARAMETER.match(error.message)):
        return ApiError(400, error.message.removeprefix("sampling_parameters: "), kind, named[1], "invalid_value")
    if status == 400 and (named := _LACKING.search(error.message)):
        return ApiError(400, error.message, kind, named[1], "unsupported_parameter")
    param = "model" if status == 404 else None
    return ApiError(status, error.message, kind, param, code, _RETRY_AFTER_S if status == 503 else 0)
