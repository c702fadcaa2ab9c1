"""Errors in OpenAI's form: an object with message, type, param and code, and the HTTP status that goes with them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
        f"The model '{name}' does not exist or is none that this API can use: GET /v1/models lists those that it can."
    )
    return ApiError(404, message, param="model", code="model_not_found")


def other_endpoint(name: str, endpoint: str, answered: Sequence[str]) -> ApiError:
    """Return the error of a model that does not answer an endpoint, but others."""
    message = f"The model '{name}' does not answer {endpoint}; it answers {' and '.join(answered)}."
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
_LACKING: Final = re.compile(r"backend '\w+' has no '(\w+)'(?: here)?(?:; leave it out)?")
_REQUESTED_TOKENS: Final = re.compile(r"'max_tokens' asks for")
"""How language models name a parameter in their messages: one that is wrong, one that the engine lacks, and the one
that does not fit next to the prompt."""
_NO_TOOL_CHOICE: Final = (
    "does not constrain its text, so it cannot be made to call a tool; leave tool_choice at auto, or use vllm or "
    "tensorrt_llm"
)
_TEMPLATE_VARIABLES: Final = re.compile(r"'(chat_template_kwargs)'")
_PROMPT: Final = re.compile(
    r"chat template|has no tokenizer|prompt is empty|input id \d|input 'messages'|messages?'s? |out of vocabulary"
)
_CONSTRAINT_WORDS: Final = re.compile(r"grammar|json ?schema|structural[ _]tag|structured|guided|regex", re.IGNORECASE)
"""Words of errors of the prompt, and of engines that cannot compile a constraint of the text."""
CONSTRAINT: Final = "structured_outputs"
_NAMED: Final = re.compile(r"\b(model|instance|adapter|version) '[^']*'")
"""Names in messages, which may be made of any words."""
TOOLS: Final = "tools"


@dataclass(frozen=True, slots=True)
class ParameterNames:
    """The names that a request has for what models call otherwise: `prompt`, and by a model's name `sampling`.

    `sampling` has structured_outputs if the request constrains its text, as `TOOLS` if it does by a required tool.
    """

    prompt: str
    sampling: Mapping[str, str] = field(default_factory=dict)

    def of(self, parameter: str) -> str:
        """Return the request's name of a parameter of sampling."""
        return self.sampling.get(parameter, parameter)


def from_serving(error: ServingError, names: ParameterNames | None = None) -> ApiError:
    """Return a serving error in OpenAI's form. With `names` it names the parameter at fault."""
    if error.reason is FailureReason.REJECTED:
        message = f"{error.message}. The model's queue is full: try again later."
        return ApiError(429, message, "rate_limit_error", None, "rate_limit_exceeded", _RETRY_AFTER_S)
    status, kind, code = _STATUS[error.kind]
    if status == 400 and names is not None:
        return _at_fault(error.message, names, code)
    param = "model" if status == 404 else None
    return ApiError(status, error.message, kind, param, code, _RETRY_AFTER_S if status == 503 else 0)


def _at_fault(message: str, names: ParameterNames, code: str | None) -> ApiError:
    """Return the error of a request that a model refuses, with the parameter that its message is about."""
    words = _NAMED.sub(r"\1", message)
    if _TOO_LONG in words:
        return _too_long(message, names)
    if match := _PARAMETER.match(message):
        name = names.of(match[1])
        message = message.removeprefix("sampling_parameters: ").replace(f"'{match[1]}'", f"'{name}'")
        return invalid(message, name, "invalid_value")
    if match := _LACKING.search(words):
        return _lacking(message, match[0], match[1], names)
    if match := _TEMPLATE_VARIABLES.search(words):
        return invalid(message, match[1], "invalid_value")
    if _PROMPT.search(words):
        return invalid(message, names.prompt, "invalid_value")
    if CONSTRAINT in names.sampling and _CONSTRAINT_WORDS.search(words):
        return invalid(message, names.of(CONSTRAINT), "invalid_value")
    return invalid(message, None, code)


def _too_long(message: str, names: ParameterNames) -> ApiError:
    param = names.prompt
    if _REQUESTED_TOKENS.search(message):
        param = names.of("max_tokens")
        message = message.replace("'max_tokens'", f"'{param}'")
    return invalid(message, param, "context_length_exceeded")


def _lacking(message: str, lack: str, parameter: str, names: ParameterNames) -> ApiError:
    """Return the error of a backend that lacks a parameter, which is what the words `lack` say."""
    name = names.of(parameter)
    if name == TOOLS:
        about = lack.partition(" has no ")[0]
        return invalid(message.replace(lack, f"{about} {_NO_TOOL_CHOICE}"), "tool_choice", "unsupported_parameter")
    return invalid(message.replace(lack, lack.replace(f"'{parameter}'", f"'{name}'")), name, "unsupported_parameter")
