"""Server-sent events of a streamed answer, read as they arrive."""

from typing import Any

import msgspec

from argosy.bench.answers import Answer

_DATA = b"data:"
_DONE = b"[DONE]"


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None

    def has_text(self) -> bool:
        """Return whether the choice brings text, be it reasoning."""
        delta = self.delta
        return bool(self.text or (delta and (delta.content or delta.reasoning or delta.reasoning_content)))


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    """The tokens that an endpoint has counted."""

    prompt_tokens: int
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Event(msgspec.Struct):
    choices: list[_Choice] = []
    usage: Usage | None = None
    error: Any = None


class Reply(msgspec.Struct):
    """The body of an answer that is not streamed."""

    usage: Usage | None = None


_decoder = msgspec.json.Decoder(_Event)


class EventReader:
    """Fills in an answer from the bytes of its stream. Bytes may be cut anywhere."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._rest = b""
        self._textless: list[float] = []
        self._done = False
        self._has_usage = False

    def feed(self, data: bytes, now: float) -> None:
        """Take in bytes that arrived at `now`."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(_DATA) and not self._answer.error:
                self._event(line[len(_DATA) :].strip(), now)

    def finish(self, now: float) -> None:
        """End the answer; it is an error where the stream broke off, or lacks what is measured."""
        answer = self._answer
        answer.end = answer.end or now
        # A model may generate tokens without text alone, such as parts of characters: then chunks count.
        answer.arrivals = answer.arrivals or self._textless
        if answer.error:
            return
        if not self._done:
            answer.error = "the stream ended before [DONE]"
        elif not self._has_usage:
            answer.error = "the stream has no usage: the endpoint ignores stream_options.include_usage"
        elif not answer.arrivals:
            answer.error = "the stream has no tokens"

    def _event(self, data: bytes, now: float) -> None:
        answer = self._answer
        if data == _DONE:
            self._done, answer.end = True, now
            return
        try:
            event = _decoder.decode(data)
        except msgspec.MsgspecError as error:
            answer.error = f"an event is not as OpenAI's API has it: {error}"
            return
        if event.error is not None:
            answer.error = error_text(event.error)
        elif event.choices:
            has_text = any(choice.has_text() for choice in event.choices)
            (answer.arrivals if has_text else self._textless).append(now)
        if event.usage is not None:
            self._read_usage(event.usage)

    def _read_usage(self, usage: Usage) -> None:
        answer, details = self._answer, usage.prompt_tokens_details
        self._has_usage = True
        answer.prompt_tokens, answer.output_tokens = usage.prompt_tokens, usage.completion_tokens
        answer.cached_tokens = (details.cached_tokens or 0) if details else 0


def error_text(error: object) -> str:
    """Return the message of an error as OpenAI's API, or another one, writes it."""
    if isinstance(error, dict):
        inner = error.get("error", error)
        return str(inner.get("message", inner) if isinstance(inner, dict) else inner)
    return str(error)
