"""Answers to completions: one object, or a stream of chunks of the same options."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from argosy_runtime.language import Delta, ResponseReader

from .events import DONE, event, padding
from .finish import finish_reason
from .head import AnswerHead
from .logprobs import CompletionLogprobs
from .reader import Reader, usage

_OBJECT: Final = "text_completion"


@dataclass(frozen=True, slots=True)
class CompletionOptions:
    """What an answer shows. `choices`: of each prompt, of which the `best` likeliest by the token are shown (0: all).

    `logprobs`: alternatives for each token, None without.

    `echoes`: of each prompt the text to put before a choice; empty where there is no echo, or the model repeats it.
    """

    echoes: Sequence[str]
    choices: int = 1
    logprobs: int | None = None
    echo: bool = False
    best: int = 0


class _Choice:
    """One choice on its way: what its deltas add, its echo first."""

    __slots__ = ("_begun", "_echo", "_logprobs", "_reader", "_shows_prompt")

    def __init__(self, options: CompletionOptions, prompt: int, reader: Reader) -> None:
        self._reader = reader
        self._echo = options.echoes[prompt]
        self._shows_prompt = options.echo
        self._begun = False
        self._logprobs = None if options.logprobs is None else CompletionLogprobs(options.logprobs)

    def take(self, delta: Delta) -> tuple[str, dict[str, Any] | None]:
        """Return the text that a delta adds, and the probabilities of its tokens."""
        text = delta.text if self._begun else self._echo + delta.text
        first, self._begun = not self._begun, True
        logprobs = self._logprobs
        if logprobs is None:
            return text, None
        logprobs.text(text, complete=bool(delta.finish_reason))
        if first and self._shows_prompt:
            logprobs.prompt(self._echo or text, self._reader.prompt_logprobs or [])
        logprobs.tokens(delta.logprobs or [])
        return text, logprobs.pop()


class CompletionAnswer:
    """A completion, put together from deltas. There is a reader for each prompt."""

    def __init__(self, head: AnswerHead, readers: Sequence[ResponseReader], options: CompletionOptions) -> None:
        self._head = head
        self._readers = readers
        self._options = options
        self._choices: dict[int, _Choice] = {}
        self._documents: dict[int, dict[str, Any]] = {}
        self._cumulative: dict[int, float] = {}

    def take(self, prompt: int, delta: Delta) -> None:
        """Take a delta of the prompt with this number. Raises ApiError where the engine has given up."""
        index = prompt * self._options.choices + delta.index
        if index not in self._choices:
            self._choices[index] = _Choice(self._options, prompt, self._readers[prompt])
            self._documents[index] = {"text": "", "index": index, "logprobs": None, "finish_reason": "stop"}
        document = self._documents[index]
        text, logprobs = self._choices[index].take(delta)
        document["text"] += text
        if logprobs is not None:
            document["logprobs"] = _joined(document["logprobs"], logprobs)
        if delta.cumulative_logprob is not None:
            self._cumulative[index] = delta.cumulative_logprob
        if delta.finish_reason:
            document["finish_reason"] = finish_reason(delta.finish_reason)

    def body(self) -> bytes:
        """Return the JSON of the answer."""
        document = self._head.fields(_OBJECT)
        document["choices"] = self._best() if self._options.best else self._all()
        document["usage"] = usage(self._readers)
        return orjson.dumps(document)

    def _all(self) -> list[dict[str, Any]]:
        return [self._documents[index] for index in sorted(self._documents)]

    def _best(self) -> list[dict[str, Any]]:
        """Return the likeliest choices of each prompt, by the mean over their tokens, the best first."""
        best: list[dict[str, Any]] = []
        for prompt in range(len(self._readers)):
            first = prompt * self._options.choices
            indexes = sorted(range(first, first + self._options.choices), key=self._likelihood, reverse=True)
            best += [self._documents[index] for index in indexes[: self._options.best]]
        for index, choice in enumerate(best):
            choice["index"] = index
        return best

    def _likelihood(self, index: int) -> float:
        prompt, choice = divmod(index, self._options.choices)
        tokens = self._readers[prompt].num_output_tokens.get(choice, 0)
        return self._cumulative.get(index, 0.0) / max(1, tokens)


def _joined(before: dict[str, Any] | None, more: dict[str, Any]) -> dict[str, Any]:
    return more if before is None else {name: before[name] + values for name, values in more.items()}


class CompletionStream:
    """The events of a completion. The parts that they have in common are encoded once."""

    def __init__(
        self,
        head: AnswerHead,
        readers: Sequence[Reader],
        options: CompletionOptions,
        include_usage: bool = False,
        obfuscates: bool = False,
    ) -> None:
        self._head = head
        self._readers = readers
        self._options = options
        self._include_usage = include_usage
        self._obfuscates = obfuscates
        self._plain = options.logprobs is None and not obfuscates
        self._choices: dict[int, _Choice] = {}
        self._prefix = head.prefix(_OBJECT) + b'"choices":[{"index":'
        self._end = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._text_end = b',"logprobs":null,"finish_reason":null}]' + self._end

    def take(self, prompt: int, delta: Delta) -> bytes:
        """Return the events of a delta. Raises ApiError where the engine has given up."""
        index = prompt * self._options.choices + delta.index
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _Choice(self._options, prompt, self._readers[prompt])
        elif self._plain and not delta.finish_reason:
            # The path of nearly all tokens.
            if not delta.text:
                return b""
            return b'%b%d,"text":%b%b' % (self._prefix, index, orjson.dumps(delta.text), self._text_end)
        return self._chunk(index, choice, delta)

    def _chunk(self, index: int, choice: _Choice, delta: Delta) -> bytes:
        text, logprobs = choice.take(delta)
        if not (text or delta.finish_reason or (logprobs and logprobs["tokens"])):
            return b""
        reason = orjson.dumps(finish_reason(delta.finish_reason)) if delta.finish_reason else b"null"
        parts = (self._prefix, index, orjson.dumps(text), orjson.dumps(logprobs), reason)
        chunk = b'%b%d,"text":%b,"logprobs":%b,"finish_reason":%b}]' % parts
        if self._obfuscates:
            chunk += b',"obfuscation":"%b"' % padding(len(chunk))
        return chunk + self._end

    def end(self) -> bytes:
        """Return the last events."""
        if not self._include_usage:
            return DONE
        document = {**self._head.fields(_OBJECT), "choices": [], "usage": usage(self._readers)}
        return event(orjson.dumps(document)) + DONE
