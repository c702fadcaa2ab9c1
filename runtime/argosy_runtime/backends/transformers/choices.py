"""One of the answers to a request, as its tokens come: its text, where it stops, and what is new."""

from collections.abc import Callable, Sequence
from typing import Any

from argosy_runtime.language import Delta, LogprobEntry, StopText, StreamedText, logprob_entry

from .generation import Generation
from .sampling.processors import TokenLogprobs

Decode = Callable[[Sequence[int]], str]


class Choice:
    """One answer. `advance` takes all of its tokens so far; `delta` returns what is new since the last one."""

    def __init__(self, index: int, generation: Generation, tokenizer: Any) -> None:
        sampling = generation.request.sampling
        self._index = index
        self._generation = generation
        self._tokenizer = tokenizer
        self._skip_special = sampling.skip_special_tokens
        self._text = StreamedText(self._decode) if tokenizer is not None and self._needs_text() else None
        self._stop = StopText(sampling.stops, sampling.include_stop_str_in_output)
        self._tokens: Sequence[int] = ()
        self._logprobs: Sequence[TokenLogprobs] = ()
        self._new = ""
        self._sent = 0
        self._cumulative = 0.0
        self.finish_reason: str | None = None
        self._stop_reason: str | int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the answer is complete."""
        return self.finish_reason is not None

    @property
    def is_not_finite(self) -> bool:
        """Whether it ended because its logits are not finite."""
        return bool(self._tokens) and self._tokens[-1] == self._generation.marker

    @property
    def tokens(self) -> int:
        """Number of its tokens so far."""
        return len(self._tokens)

    def advance(self, tokens: Sequence[int], logprobs: Sequence[TokenLogprobs], final: bool) -> None:
        """Take all tokens so far; `final` where the library has no more of them."""
        self._tokens, self._logprobs = tokens, logprobs
        if final:
            self._end(tokens[-1] if tokens else None)
        if self._text is None or self.is_not_finite:
            return
        new = self._text.last(self._spoken()) if final else self._text.next(tokens)
        self._new += self._stop.next(new, len(tokens) > self._generation.request.sampling.min_tokens)
        if self._stop.stopped_by is not None:
            self.finish_reason, self._stop_reason = "stop", self._stop.stopped_by
        elif final:
            self._new += self._stop.last()

    def delta(self) -> Delta | None:
        """Return what is new; None where there is nothing to tell yet."""
        tokens = list(self._tokens[self._sent :])
        if not self.has_ended and not (self._new if self._text is not None else tokens):
            return None
        new, self._new = self._new, ""
        logprobs = self._logprobs[self._sent :]
        self._sent = len(self._tokens)
        self._cumulative += sum(entry.logprob for entry in logprobs)
        has_logprobs = self._generation.request.sampling.logprobs is not None
        return Delta(
            self._index,
            new,
            tokens,
            self.finish_reason,
            self._stop_reason,
            self._cumulative if self._logprobs else None,
            _positions(self._tokenizer, tokens, logprobs) if has_logprobs else None,
        )

    def _end(self, last: int | None) -> None:
        stopped = last is not None and last in self._generation.ends
        self.finish_reason = "stop" if stopped else "length"
        self._stop_reason = last if last in self._generation.stop_ids else None

    def _spoken(self) -> Sequence[int]:
        """Return the tokens of the text: without the one that ended it."""
        hidden = self.finish_reason == "stop" and not self._generation.request.sampling.include_stop_str_in_output
        return self._tokens[:-1] if hidden else self._tokens

    def _needs_text(self) -> bool:
        request = self._generation.request
        return request.wants("text_output") or bool(request.sampling.stops)

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=self._skip_special))


def _position(tokenizer: Any, token: int, logprobs: TokenLogprobs) -> dict[int, LogprobEntry]:
    """Return what is told of a token that was chosen: it first, then the likeliest ones."""
    entries = {token: logprob_entry(tokenizer, token, logprobs.logprob, logprobs.rank)}
    for rank, (other, logprob) in enumerate(logprobs.likeliest, 1):
        entries.setdefault(other, logprob_entry(tokenizer, other, logprob, rank))
    return entries


def _positions(
    tokenizer: Any, tokens: Sequence[int], logprobs: Sequence[TokenLogprobs]
) -> list[dict[int, LogprobEntry]]:
    """Return the same for each of these tokens."""
    return [_position(tokenizer, token, entry) for token, entry in zip(tokens, logprobs, strict=True)]
