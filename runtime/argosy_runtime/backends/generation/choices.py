"""One of the answers to a request, as its tokens come: its text, where it stops, and what is new."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from argosy_runtime.language import Delta, StopText, StreamedText
from argosy_runtime.language.deltas import Position

from .generation import Generation

PositionOf = Callable[[Any, int, Any, int], Position]
"""Makes a position of a tokenizer, a token, what the engine tells of it, and the number of the likeliest ones."""


class Step(NamedTuple):
    """What an engine tells of one answer so far: all of its tokens, and why it has ended, if it has.

    `logprobs` has what the engine tells of each token; `cached` is the number of the prompt's tokens that were cached.
    """

    tokens: Sequence[int]
    logprobs: Sequence[Any] = ()
    finish_reason: str | None = None
    cached: int = 0


class Choice:
    """One answer. `advance` takes what the engine tells; `delta` returns what is new since the last one."""

    def __init__(self, index: int, generation: Generation, tokenizer: Any, position_of: PositionOf) -> None:
        sampling = generation.request.sampling
        self._index = index
        self._generation = generation
        self._sampling = sampling
        self._tokenizer = tokenizer
        self._position_of = position_of
        self._text = StreamedText(self._decode) if tokenizer is not None and self._needs_text() else None
        self._stop = StopText(sampling.stops, sampling.include_stop_str_in_output)
        self._tokens: Sequence[int] = ()
        self._logprobs: Sequence[Any] = ()
        self._new = ""
        self._sent = 0
        self._cumulative = 0.0
        self.finish_reason: str | None = None
        self._stop_reason: str | int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the answer is complete."""
        return self.finish_reason is not None

    def advance(self, step: Step) -> None:
        """Take all tokens so far, up to the first that ends the answer."""
        end = self._end_of(step.tokens)
        self._tokens = step.tokens[:end] if end else step.tokens
        self._logprobs = step.logprobs
        if end or step.finish_reason is not None:
            self._finish("stop" if end else step.finish_reason)
        if self._text is None:
            return
        new = self._text.last(self._spoken()) if self.has_ended else self._text.next(self._tokens)
        self._new += self._stop.next(new, len(self._tokens) > self._sampling.min_tokens)
        if self._stop.stopped_by is not None:
            self.finish_reason, self._stop_reason = "stop", self._stop.stopped_by
        elif self.has_ended:
            self._new += self._stop.last()

    def delta(self) -> Delta | None:
        """Return what is new; None where there is nothing to tell yet."""
        tokens = list(self._tokens[self._sent :])
        if not self.has_ended and not (self._new if self._text is not None else tokens):
            return None
        new, self._new = self._new, ""
        positions = self._positions()
        self._cumulative += sum(next(iter(position.values())).logprob or 0.0 for position in positions)
        self._sent = len(self._tokens)
        return Delta(
            self._index,
            new,
            tokens,
            self.finish_reason,
            self._stop_reason,
            None if self._generation.logprobs is None else self._cumulative,
            positions if self._sampling.logprobs is not None else None,
        )

    def _end_of(self, tokens: Sequence[int]) -> int:
        """Return the number of tokens up to the first that ends the answer, 0 without one. Earlier ends than after
        `min_tokens` do not count.
        """
        start = max(len(self._tokens), self._sampling.min_tokens - 1, 0)
        return next((at + 1 for at in range(start, len(tokens)) if tokens[at] in self._generation.ends), 0)

    def _finish(self, reason: str | None) -> None:
        self.finish_reason = reason
        last = self._tokens[-1] if self._tokens else None
        self._stop_reason = last if reason == "stop" and last in self._generation.stop_ids else None

    def _spoken(self) -> Sequence[int]:
        """Return the tokens of the text: without the one that ended it."""
        ended = bool(self._tokens) and self._tokens[-1] in self._generation.ends
        hidden = self.finish_reason == "stop" and ended and not self._sampling.include_stop_str_in_output
        return self._tokens[:-1] if hidden else self._tokens

    def _needs_text(self) -> bool:
        wants = self._generation.request.wants("text_output")
        return self._sampling.detokenize and (wants or bool(self._sampling.stops))

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=self._sampling.skip_special_tokens))

    def _positions(self) -> list[Position]:
        count = self._generation.logprobs
        if count is None:
            return []
        until = min(len(self._tokens), len(self._logprobs))
        return [
            self._position_of(self._tokenizer, self._tokens[at], self._logprobs[at], count)
            for at in range(self._sent, until)
        ]
