"""The items of a response as its text comes, and the events that report them."""

import secrets
from collections.abc import Iterator
from typing import Any

from argosy_runtime.language import Delta
from argosy_runtime.protocol.openai.responses.logprobs import chat_content
from argosy_runtime.protocol.openai.tools.answers import CallReader, call_id
from argosy_runtime.protocol.openai.tools.scanning import CallStart
from argosy_runtime.protocol.openai.tools.use import ToolUse

Event = dict[str, Any]


class Output:
    """Messages and calls, in the order in which the model writes them. `logprobs`: alternatives for each token."""

    def __init__(self, tools: ToolUse | None, logprobs: int | None) -> None:
        self.items: list[dict[str, Any]] = []
        self._calls = None if tools is None else CallReader(tools)
        self._logprobs = logprobs
        self._open: dict[str, Any] | None = None

    def take(self, delta: Delta) -> Iterator[Event]:
        """Take the next piece of the text, and yield the events of it."""
        complete = delta.finish_reason is not None
        pieces = [delta.text] if self._calls is None else self._calls.read(delta.text, complete)
        logprobs = chat_content(delta.logprobs, self._logprobs) if delta.logprobs and self._logprobs is not None else []
        for piece in pieces:
            if isinstance(piece, CallStart):
                yield from self._begin_call(piece.name)
            elif isinstance(piece, str):
                yield from self._add_text(piece, logprobs)
                logprobs = []
            else:
                yield from self._add_arguments(piece.text)
        if complete:
            if not self.items:
                yield from self._begin_message()
            yield from self._close("incomplete" if delta.finish_reason in ("length", "content_filter") else "completed")

    def _add_text(self, text: str, logprobs: list[dict[str, Any]]) -> Iterator[Event]:
        if not text and not logprobs:
            return
        if self._open is None or self._open["type"] != "message":
            yield from self._begin_message()
        assert self._open is not None
        part = self._open["content"][0]
        part["text"] += text
        part["logprobs"] += logprobs
        yield self._event("output_text.delta", content_index=0, delta=text, logprobs=_of_event(logprobs))

    def _add_arguments(self, text: str) -> Iterator[Event]:
        assert self._open is not None
        self._open["arguments"] += text
        yield self._event("function_call_arguments.delta", delta=text)

    def _begin_message(self) -> Iterator[Event]:
        item: dict[str, Any] = {"id": _new_id("msg"), "type": "message", "role": "assistant", "content": []}
        yield from self._begin(item)
        part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield self._event("content_part.added", content_index=0, part={**part, "logprobs": []})
        item["content"] = [part]

    def _begin_call(self, name: str) -> Iterator[Event]:
        call = {"type": "function_call", "call_id": call_id(), "name": name, "arguments": ""}
        yield from self._begin({"id": _new_id("fc"), **call})

    def _begin(self, item: dict[str, Any]) -> Iterator[Event]:
        yield from self._close("completed")
        item["status"] = "in_progress"
        self._open = item
        self.items.append(item)
        yield self._event("output_item.added", item=dict(item))

    def _close(self, status: str) -> Iterator[Event]:
        """End the item that is being written, if there is one."""
        item = self._open
        if item is None:
            return
        if item["type"] == "message":
            part = item["content"][0]
            yield self._event(
                "output_text.done", content_index=0, text=part["text"], logprobs=_of_event(part["logprobs"])
            )
            yield self._event("content_part.done", content_index=0, part=dict(part))
        else:
            yield self._event("function_call_arguments.done", arguments=item["arguments"])
        item["status"] = status
        yield self._event("output_item.done", item=dict(item))
        self._open = None

    def _event(self, kind: str, **fields: Any) -> Event:
        event: Event = {"type": f"response.{kind}", "output_index": len(self.items) - 1}
        if not kind.startswith("output_item"):
            event["item_id"] = self.items[-1]["id"]
        return {**event, **fields}


def _of_event(logprobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return probabilities as events have them: without the bytes of tokens, which the item has."""
    return [
        {
            "token": entry["token"],
            "logprob": entry["logprob"],
            "top_logprobs": [{"token": top["token"], "logprob": top["logprob"]} for top in entry["top_logprobs"]],
        }
        for entry in logprobs
    ]


def _new_id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(24)}"
