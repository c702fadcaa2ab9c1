"""Chat completions with calls of tools: as one object, or as a stream of chunks."""

import secrets
from typing import Any

import orjson

from argosy_runtime.language import Delta
from argosy_runtime.protocol.openai.responses.chat import ChatAnswer, ChatStream, Choice
from argosy_runtime.protocol.openai.responses.events import padding
from argosy_runtime.protocol.openai.responses.head import AnswerHead
from argosy_runtime.protocol.openai.responses.reader import Reader

from .calls import Calls, NamedCalls, TextCalls
from .scanning import Arguments, CallStart, Piece
from .use import ToolUse

CALLS = "tool_calls"


class CallReader:
    """Reads the calls of one choice, as many as the request allows."""

    def __init__(self, use: ToolUse) -> None:
        self._calls: Calls = NamedCalls(use.named) if use.named else TextCalls(use.names)
        self._most = 0 if use.parallel else 1
        self.count = 0

    def read(self, text: str, complete: bool) -> list[Piece]:
        """Return the pieces of content and of calls in the next piece of text."""
        pieces = self._calls.feed(text)
        if complete:
            pieces += self._calls.end()
        return [piece for piece in pieces if self._is_allowed(piece)]

    def _is_allowed(self, piece: Piece) -> bool:
        if isinstance(piece, CallStart):
            self.count += 1
        return isinstance(piece, str) or not self._most or self.count <= self._most


def call_id() -> str:
    """Return a new id of a call."""
    return f"call_{secrets.token_hex(12)}"


def read_answer(use: ToolUse, text: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the content of a complete text, and its calls as OpenAI's objects."""
    content: list[str] = []
    calls: list[dict[str, Any]] = []
    for piece in CallReader(use).read(text, complete=True):
        if isinstance(piece, str):
            content.append(piece)
        elif isinstance(piece, CallStart):
            function = {"name": piece.name, "arguments": ""}
            calls.append({"id": call_id(), "type": "function", "function": function})
        else:
            calls[-1]["function"]["arguments"] += piece.text
    return "".join(content), calls


class ToolAnswer(ChatAnswer):
    """A chat completion whose text may have calls."""

    def __init__(self, head: AnswerHead, reader: Reader, use: ToolUse, logprobs: int | None = None) -> None:
        super().__init__(head, reader, logprobs)
        self._use = use

    def _choice(self, index: int, choice: Choice) -> dict[str, Any]:
        document = super()._choice(index, choice)
        message = document["message"]
        content, calls = read_answer(self._use, message["content"])
        if calls:
            document["message"] = {**message, "content": content or None, "tool_calls": calls}
            if document["finish_reason"] == "stop" and not self._use.named:
                document["finish_reason"] = CALLS
        return document


class ToolStream(ChatStream):
    """The events of a chat completion whose text may have calls. Arguments come as the model writes them."""

    def __init__(
        self,
        head: AnswerHead,
        reader: Reader,
        use: ToolUse,
        logprobs: int | None = None,
        include_usage: bool = False,
        obfuscates: bool = False,
    ) -> None:
        super().__init__(head, reader, logprobs, include_usage, obfuscates)
        self._use = use
        self._readers: dict[int, CallReader] = {}
        self._numbers: dict[int, int] = {}

    def take(self, prompt: int, delta: Delta) -> bytes:
        events: list[bytes] = []
        reader = self._readers.get(delta.index)
        if reader is None:
            reader = self._readers[delta.index] = CallReader(self._use)
            events.append(self._first(delta.index))
        complete = delta.finish_reason is not None
        for piece in reader.read(delta.text, complete):
            if isinstance(piece, str):
                events.append(self._chunk(Delta(delta.index, piece)))
            else:
                events.append(self._call(delta.index, piece))
        reason = delta.finish_reason
        if reason == "stop" and reader.count and not self._use.named:
            reason = CALLS
        events.append(self._chunk(Delta(delta.index, logprobs=delta.logprobs, finish_reason=reason)))
        return b"".join(events)

    def _call(self, index: int, piece: CallStart | Arguments) -> bytes:
        call: dict[str, Any]
        if isinstance(piece, CallStart):
            number = self._numbers[index] = self._numbers.get(index, -1) + 1
            function = {"name": piece.name, "arguments": ""}
            call = {"index": number, "id": call_id(), "type": "function", "function": function}
        else:
            call = {"index": self._numbers[index], "function": {"arguments": piece.text}}
        begin = self._delta_begin(index)
        chunk = b'%b%b,"logprobs":null,"finish_reason":null}]' % (begin, orjson.dumps({"tool_calls": [call]}))
        if self._obfuscates:
            chunk += b',"obfuscation":"%b"' % padding(len(chunk))
        return chunk + self._end
