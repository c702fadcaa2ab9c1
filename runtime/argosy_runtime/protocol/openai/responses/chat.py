"""Answers to chats: one object, or a stream of chunks."""

from typing import Any, Final

import orjson

from argosy_runtime.language import Delta

from .events import DONE, event, padding
from .finish import finish_reason
from .head import AnswerHead
from .logprobs import chat_content
from .reader import Reader, usage

_OBJECT: Final = "chat.completion"
_CHUNK: Final = "chat.completion.chunk"


class Choice:
    """One choice of a whole answer."""

    __slots__ = ("finish_reason", "logprobs", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.logprobs: list[dict[str, Any]] = []
        self.finish_reason = "stop"


class ChatAnswer:
    """A chat completion, put together from deltas. `logprobs`: alternatives for each token, None without."""

    def __init__(self, head: AnswerHead, reader: Reader, logprobs: int | None = None) -> None:
        self._head = head
        self._reader = reader
        self._logprobs = logprobs
        self._choices: dict[int, Choice] = {}

    def take(self, prompt: int, delta: Delta) -> None:
        """Take a delta; a chat has one prompt. Raises ApiError where the engine has given up."""
        choice = self._choices.get(delta.index)
        if choice is None:
            choice = self._choices[delta.index] = Choice()
        choice.pieces.append(delta.text)
        if self._logprobs is not None and delta.logprobs:
            choice.logprobs += chat_content(delta.logprobs, self._logprobs)
        if delta.finish_reason:
            choice.finish_reason = finish_reason(delta.finish_reason)

    def body(self) -> bytes:
        """Return the JSON of the answer."""
        document = self._head.fields(_OBJECT)
        document["choices"] = [self._choice(index, self._choices[index]) for index in sorted(self._choices)]
        document["usage"] = usage([self._reader])
        return orjson.dumps(document)

    def _choice(self, index: int, choice: Choice) -> dict[str, Any]:
        return {
            "index": index,
            "message": {"role": "assistant", "content": "".join(choice.pieces), "refusal": None},
            "logprobs": None if self._logprobs is None else {"content": choice.logprobs, "refusal": None},
            "finish_reason": choice.finish_reason,
        }


class ChatStream:
    """The events of a chat completion. The parts that they have in common are encoded once.

    With `include_usage` each event has the field `usage`, and one more at the end has the counts. `obfuscates`: events
    are padded.
    """

    def __init__(
        self,
        head: AnswerHead,
        reader: Reader,
        logprobs: int | None = None,
        include_usage: bool = False,
        obfuscates: bool = False,
    ) -> None:
        self._head = head
        self._reader = reader
        self._logprobs = logprobs
        self._include_usage = include_usage
        self._obfuscates = obfuscates
        self._plain = logprobs is None and not obfuscates
        self._prefix = head.prefix(_CHUNK) + b'"choices":[{"index":'
        self._end = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._content_end = b'},"logprobs":null,"finish_reason":null}]' + self._end
        # The start of events with content, by choice; made with the choice's first event.
        self._content_begins: dict[int, bytes] = {}

    def take(self, prompt: int, delta: Delta) -> bytes:
        """Return the events of a delta; a chat has one prompt. Raises ApiError where the engine has given up."""
        begin = self._content_begins.get(delta.index)
        if begin is None:
            return self._first(delta.index) + self._chunk(delta)
        if not self._plain or delta.finish_reason:
            return self._chunk(delta)
        # The path of nearly all tokens.
        return begin + orjson.dumps(delta.text) + self._content_end if delta.text else b""

    def _first(self, index: int) -> bytes:
        """Return the first event of a choice, and store how its next ones start."""
        begin = self._delta_begin(index)
        self._content_begins[index] = begin + b'{"content":'
        role = b'{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]'
        return begin + role + self._end

    def _delta_begin(self, index: int) -> bytes:
        return b'%b%d,"delta":' % (self._prefix, index)

    def _chunk(self, delta: Delta) -> bytes:
        logprobs = b"null"
        if self._logprobs is not None and delta.logprobs:
            content = chat_content(delta.logprobs, self._logprobs)
            logprobs = orjson.dumps({"content": content, "refusal": None})
        if not (delta.text or delta.finish_reason or logprobs != b"null"):
            return b""
        text = orjson.dumps({"content": delta.text}) if delta.text else b"{}"
        reason = orjson.dumps(finish_reason(delta.finish_reason)) if delta.finish_reason else b"null"
        begin = self._delta_begin(delta.index)
        chunk = b'%b%b,"logprobs":%b,"finish_reason":%b}]' % (begin, text, logprobs, reason)
        if self._obfuscates:
            chunk += b',"obfuscation":"%b"' % padding(len(chunk))
        return chunk + self._end

    def end(self) -> bytes:
        """Return the last events."""
        if not self._include_usage:
            return DONE
        document = {**self._head.fields(_CHUNK), "choices": [], "usage": usage([self._reader])}
        return event(orjson.dumps(document)) + DONE
