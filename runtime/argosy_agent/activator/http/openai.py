"""Requests of OpenAI's API: the model's name is in their body, and errors have a form of their own. Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote

from argosy_agent.activator.pending import NotForwardedError, Refusal
from argosy_agent.activator.request_kind import NO_SERVER, RequestKind

from .messages import Head, json_answer

BODY_LIMIT = 8 << 20
"""Bytes of a body in which the model's name is looked for; prompts of a million tokens have less."""
_MOST_DIGITS = len(str(BODY_LIMIT))
_PREFIX = "/v1"
_GENERATING = frozenset(f"{_PREFIX}/{name}" for name in ("chat/completions", "completions", "embeddings", "responses"))
_MODELS = f"{_PREFIX}/models"
_HEALTH = (f"{_PREFIX}/health", "/health")
_CODES = {
    Refusal.UNKNOWN: (HTTPStatus.NOT_FOUND, "model_not_found"),
    Refusal.FULL: (HTTPStatus.TOO_MANY_REQUESTS, "rate_limit_exceeded"),
    Refusal.TIMEOUT: (HTTPStatus.SERVICE_UNAVAILABLE, "service_unavailable"),
}


class BodyError(Exception):
    """The model's name cannot be read from a body; the message says what to do. `status` is the answer's."""

    def __init__(self, status: HTTPStatus, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param = status, param


@dataclass(frozen=True, slots=True)
class OpenAiPath:
    """What a path of OpenAI's API asks for. `names_model`: the body names a model. `lists`: the models, or the one
    `model`.
    """

    kind: RequestKind
    names_model: bool = False
    lists: bool = False
    model: str = ""


def parse_openai(path: str) -> OpenAiPath | None:
    """Return what a path asks of OpenAI's API; None for another API's."""
    if path in _GENERATING:
        return OpenAiPath(RequestKind.QUEUE, names_model=True)
    if path in _HEALTH:
        return OpenAiPath(RequestKind.SERVER_READY)
    if path == _MODELS or path.startswith(f"{_MODELS}/"):
        return OpenAiPath(RequestKind.SERVER, lists=True, model=unquote(path[len(_MODELS) + 1 :]))
    return OpenAiPath(RequestKind.OTHER) if path == _PREFIX or path.startswith(f"{_PREFIX}/") else None


def body_length(head: Head) -> int:
    """Return the length of a request's body in bytes. Raises BodyError where it is not declared, or too long."""
    values = {name.lower(): value for name, value in head.headers}
    text = values.get("content-length", "")
    if not (text.isascii() and text.isdigit()):
        message = "no server has the model yet, and the request waits for one only with a header Content-Length"
        raise BodyError(HTTPStatus.LENGTH_REQUIRED, message)
    digits = text.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS or int(digits) > BODY_LIMIT:
        message = f"no server has the model yet, and a request of {text} bytes does not wait; at most {BODY_LIMIT} do"
        raise BodyError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
    return int(digits)


def expects_continue(head: Head) -> bool:
    """Return whether the client sends the body only when it is invited to."""
    return any(name.lower() == "expect" and value.lower() == "100-continue" for name, value in head.headers)


def model_of(body: bytes) -> str:
    """Return the model that a body names. Raises BodyError."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        message = f"We could not parse the JSON body of your request: {error}"
        raise BodyError(HTTPStatus.BAD_REQUEST, message) from None
    model = document.get("model") if isinstance(document, dict) else None
    if not isinstance(model, str) or not model:
        raise BodyError(HTTPStatus.BAD_REQUEST, "Missing required parameter: 'model'.", "model")
    return model


def refused(error: NotForwardedError) -> bytes:
    """Return why a request is not passed on."""
    status, code = _CODES[error.refusal]
    return failed(status, error.message, code, "model" if error.refusal is Refusal.UNKNOWN else None)


def unreadable(error: BodyError) -> bytes:
    """Return why a body is refused."""
    return failed(error.status, str(error), "invalid_request", error.param)


def no_server() -> bytes:
    """Return the answer to what only a server can answer."""
    return failed(HTTPStatus.SERVICE_UNAVAILABLE, NO_SERVER, "service_unavailable")


def failed(status: HTTPStatus, message: str, code: str | None = None, param: str | None = None) -> bytes:
    """Return an error in OpenAI's form."""
    kind = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    if status is HTTPStatus.TOO_MANY_REQUESTS:
        kind = "rate_limit_error"
    return json_answer(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


def models(names: Iterable[str], created: int) -> bytes:
    """Return the list of models."""
    return json_answer(HTTPStatus.OK, {"object": "list", "data": [_document(name, created) for name in sorted(names)]})


def model(name: str, created: int) -> bytes:
    """Return one model; `created` in seconds since 1970."""
    return json_answer(HTTPStatus.OK, _document(name, created))


def _document(name: str, created: int) -> dict[str, object]:
    return {"id": name, "object": "model", "created": created, "owned_by": "argosy"}
