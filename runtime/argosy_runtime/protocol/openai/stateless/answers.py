"""Responses: as one object, or as a stream of events."""

from typing import Any, Final

import msgspec
import orjson

from argosy_runtime.language import Delta
from argosy_runtime.protocol.openai.errors import ApiError
from argosy_runtime.protocol.openai.requests.response import ResponseRequest
from argosy_runtime.protocol.openai.responses.events import padding
from argosy_runtime.protocol.openai.responses.finish import finish_reason
from argosy_runtime.protocol.openai.responses.reader import Reader
from argosy_runtime.protocol.openai.tools.use import ToolUse

from .output import Event, Output

_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
_ECHOED: Final = ("instructions", "max_output_tokens", "user", "safety_identifier", "prompt_cache_key")


class Response:
    """A response on its way. `created` in seconds since 1970."""

    def __init__(
        self, identity: str, created: int, request: ResponseRequest, reader: Reader, tools: ToolUse | None
    ) -> None:
        self.output = Output(tools, request.requested_logprobs)
        self._reader = reader
        self._fields = _fields(identity, created, request)
        self._reason = ""

    def take(self, delta: Delta) -> list[Event]:
        """Take a delta, and return the events of it. Raises ApiError where the engine ended the request early."""
        if delta.finish_reason:
            self._reason = finish_reason(delta.finish_reason)
        return list(self.output.take(delta))

    def document(self, status: str = "", error: ApiError | None = None) -> dict[str, Any]:
        """Return the response as an object. Without a status it is complete, or incomplete with the reason."""
        incomplete = _INCOMPLETE.get(self._reason) if not status else None
        return {
            **self._fields,
            "status": status or ("incomplete" if incomplete else "completed"),
            "error": None if error is None else {"code": "server_error", "message": error.message},
            "incomplete_details": {"reason": incomplete} if incomplete else None,
            "output": [dict(item) for item in self.output.items],
            "usage": _usage(self._reader) if not status else None,
        }


class ResponseAnswer:
    """A response as one object."""

    def __init__(self, response: Response) -> None:
        self._response = response

    def take(self, prompt: int, delta: Delta) -> None:
        """Take a delta. Raises ApiError where the engine ended the request early."""
        self._response.take(delta)

    def body(self) -> bytes:
        """Return the JSON of the answer."""
        return orjson.dumps(self._response.document())


class ResponseEvents:
    """A response as events, numbered from 0. `obfuscates`: events with new text are padded."""

    def __init__(self, response: Response, obfuscates: bool = False) -> None:
        self._response = response
        self._obfuscates = obfuscates
        self._number = 0

    def take(self, prompt: int, delta: Delta) -> bytes:
        """Return the events of a delta; the first delta also has those of the start. Raises ApiError."""
        events = self._response.take(delta)
        if not self._number:
            kinds = ("created", "in_progress")
            begin = {**self._response.document("in_progress"), "output": []}
            events = [*({"type": f"response.{kind}", "response": begin} for kind in kinds), *events]
        return b"".join([self._written(event) for event in events])

    def end(self) -> bytes:
        """Return the last event, with all of the response."""
        document = self._response.document()
        return self._written({"type": f"response.{document['status']}", "response": document})

    def failed(self, error: ApiError) -> bytes:
        """Return the event that ends a stream which fails."""
        return self._written({"type": "response.failed", "response": self._response.document("failed", error)})

    def _written(self, event: Event) -> bytes:
        numbered = {**event, "sequence_number": self._number}
        self._number += 1
        if self._obfuscates and "delta" in event:
            numbered["obfuscation"] = padding(len(orjson.dumps(numbered))).decode()
        return b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), orjson.dumps(numbered))


def _fields(identity: str, created: int, request: ResponseRequest) -> dict[str, Any]:
    """Return the fields of a response that are known before it begins, most of them the request's."""
    text = msgspec.to_builtins(request.text) if request.text else {}
    effort = request.reasoning.effort if request.reasoning else None
    return {
        "id": identity,
        "object": "response",
        "created_at": created,
        "model": request.model,
        "background": False,
        "store": False,
        "previous_response_id": None,
        "truncation": "disabled",
        "metadata": request.metadata or {},
        "temperature": 1.0 if request.temperature is None else request.temperature,
        "top_p": 1.0 if request.top_p is None else request.top_p,
        "top_logprobs": request.top_logprobs or 0,
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "tool_choice": msgspec.to_builtins(request.tool_choice or "auto"),
        "tools": msgspec.to_builtins(request.tools or []),
        "text": {**text, "format": text.get("format") or {"type": "text"}},
        "reasoning": {"effort": effort, "summary": None},
        "service_tier": "default",
        **{name: getattr(request, name) for name in _ECHOED},
    }


def _usage(reader: Reader) -> dict[str, Any] | None:
    read, written = reader.num_input_tokens, reader.total_output_tokens
    if not (read or written):
        return None
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": reader.num_cached_tokens, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
