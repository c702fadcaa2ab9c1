"""One of the answers to a request, as its tokens come: its text, where it stops, and what is new."""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_runtime.language import Delta, LogprobEntry, StopText, StreamedText, logprob_entry

from .sampling import Generation


class Step:
    """What the engine tells of one answer so far: all of its tokens, and why it has ended, if it has.

    `logprobs` has for each token a mapping of candidates, or the number of the token itself.
    """

    __slots__ = ("cached", "finish_reason", "logprobs", "tokens")

    def __init__(
        self, tokens: Sequence[int], logprobs: Sequence[Any] = (), finish_reason: str | None = None, cached: int = 0
    ) -> None:
        self.tokens = tokens
        self.logprobs = logprobs
        self.finish_reason = finish_reason
        self.cached = cached


class Choice:
    """One answer. `advance` takes what the engine tells; `delta` returns what is new since the last one."""

    def __init__(self, index: int, generation: Generation, tokenizer: Any) -> None:
        sampling = generation.request.sampling
        self._index = index
        self._generation = generation
        self._tokenizer = tokenizer
        self._skip_special = sampling.skip_special_tokens
        self._text = StreamedText(self._decode) if tokenizer is not None and self._needs_text() else None
        self._stop = StopText(sampling.stops, sampling.include_stop_str_in_output)
        self._tokens: list[int] = []
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

    @property
    def tokens(self) -> int:
        """Number of its tokens so far."""
        return len(self._tokens)

    def advance(self, step: Step) -> None:
        """Take all tokens so far, up to the first that ends the answer."""
        end = self._end_of(step.tokens)
        self._tokens = list(step.tokens[:end] if end else step.tokens)
        self._logprobs = step.logprobs
        if end or step.finish_reason is not None:
            self._finish(step.finish_reason if not end else "stop")
        if self._text is None:
            return
        new = self._text.last(self._spoken()) if self.has_ended else self._text.next(self._tokens)
        self._new += self._stop.next(new, len(self._tokens) > self._generation.request.sampling.min_tokens)
        if self._stop.stopped_by is not None:
            self.finish_reason, self._stop_reason = "stop", self._stop.stopped_by
        elif self.has_ended:
            self._new += self._stop.last()

    def delta(self) -> Delta | None:
        """Return what is new; None where there is nothing to tell yet."""
        tokens = self._tokens[self._sent :]
        if not self.has_ended and not (self._new if self._text is not None else tokens):
            return None
        new, self._new = self._new, ""
        positions = [self._position(at) for at in range(self._sent, min(len(self._tokens), len(self._logprobs)))]
        self._cumulative += sum(next(iter(position.values())).logprob or 0.0 for position in positions)
        self._sent = len(self._tokens)
        return Delta(
            self._index,
            new,
            tokens,
            self.finish_reason,
            self._stop_reason,
            None if self._generation.logprobs is None else self._cumulative,
            positions if self._generation.request.sampling.logprobs is not None else None,
        )

    def _end_of(self, tokens: Sequence[int]) -> int:
        """Return the number of tokens up to the first that ends the answer, 0 without one. Earlier ends than after
        `min_tokens` do not count.
        """
        ends, least = self._generation.ends, self._generation.request.sampling.min_tokens
        start = max(len(self._tokens), least - 1, 0)
        return next((at + 1 for at in range(start, len(tokens)) if tokens[at] in ends), 0)

    def _finish(self, reason: str | None) -> None:
        self.finish_reason = reason
        last = self._tokens[-1] if self._tokens else None
        self._stop_reason = last if reason == "stop" and last in self._generation.stop_ids else None

    def _spoken(self) -> Sequence[int]:
        """Return the tokens of the text: without the one that ended it."""
        ended = bool(self._tokens) and self._tokens[-1] in self._generation.ends
        hidden = self.finish_reason == "stop" and ended
        include = self._generation.request.sampling.include_stop_str_in_output
        return self._tokens[:-1] if hidden and not include else self._tokens

    def _needs_text(self) -> bool:
        request = self._generation.request
        return request.sampling.detokenize and (request.wants("text_output") or bool(request.sampling.stops))

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=self._skip_special))

    def _position(self, at: int) -> dict[int, LogprobEntry]:
        """Return what is candidates of a token: it first, then the likeliest ones, as many as are asked for."""
        token, candidates = self._tokens[at], self._logprobs[at]
        if not isinstance(candidates, Mapping):
            return {token: logprob_entry(self._tokenizer, token, float(candidates), None)}
        ranked = sorted(candidates.items(), key=lambda item: -item[1].logprob)
        # a token that is not among the likeliest is no likelier than the last of them
        chosen = candidates.get(token) or ranked[-1][1]
        entries = {
            token: logprob_entry(self._tokenizer, token, chosen.logprob, chosen.rank if token in candidates else None)
        }
        for rank, (other, candidate) in enumerate(ranked[: self._generation.logprobs or 0], 1):
            entries.setdefault(other, logprob_entry(self._tokenizer, other, candidate.logprob, candidate.rank or rank))
        return entries
