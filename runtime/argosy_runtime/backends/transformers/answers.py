"""The responses of one request, as the tokens of its choices come."""

from collections.abc import Sequence
from typing import Any

from argosy_runtime.backends.contract import Responder
from argosy_runtime.errors import FailureReason, ServingError, internal
from argosy_runtime.language import Delta, ResponseBuilder

from .choices import Choice
from .generation import Generation
from .sampling.processors import TokenLogprobs


class Answer:
    """One request of a batch. Its methods are called by one thread at a time.

    A request that streams has a response for the news of each choice, another one a single response.
    """

    def __init__(
        self,
        generation: Generation,
        responder: Responder,
        index: int,
        builder: ResponseBuilder,
        tokenizer: Any,
        name: str,
    ) -> None:
        self._stream = generation.request.stream
        self._responder = responder
        self._index = index
        self._builder = builder
        self._name = name
        self._choices = [Choice(number, generation, tokenizer) for number in range(generation.request.sampling.n)]
        self._deltas: dict[int, Delta] = {}
        self._has_ended = False
        builder.num_input_tokens = len(generation.input_ids)

    def is_cancelled(self) -> bool:
        """Return whether no more is needed of it."""
        return self._has_ended or self._responder.is_cancelled(self._index)

    def advance(self, choice: int, tokens: Sequence[int], logprobs: Sequence[TokenLogprobs], final: bool) -> bool:
        """Take all tokens of a choice so far, and send what there is to send. Return whether the choice has ended."""
        state = self._choices[choice]
        state.advance(tokens, logprobs, final)
        if state.is_not_finite:
            self.fail(self._not_finite(state.tokens - 1))
        elif self._stream:
            self._send_news(state)
        elif state.has_ended and (delta := state.delta()) is not None:
            self._deltas[choice] = delta
            if len(self._deltas) == len(self._choices):
                self._send([self._deltas[number] for number in range(len(self._choices))], True)
        return state.has_ended

    def cached(self, tokens: int) -> None:
        """Take the number of the prompt's tokens that were cached."""
        self._builder.num_cached_tokens = max(self._builder.num_cached_tokens, tokens)

    def fail(self, error: ServingError) -> None:
        """End the request with an error, unless it has ended."""
        if not self._has_ended:
            self._has_ended = True
            self._responder.send(self._index, self._builder.failure(error))

    def _send_news(self, choice: Choice) -> None:
        if not choice.has_ended and self._responder.is_paused(self._index):
            return  # the next response has these tokens too, and no other request's answers wait
        delta = choice.delta()
        if delta is not None:
            self._send([delta], all(other.has_ended for other in self._choices))

    def _send(self, deltas: list[Delta], final: bool) -> None:
        if not self._has_ended:
            self._has_ended = final
            self._responder.send(self._index, self._builder.response(deltas, final))

    def _not_finite(self, tokens: int) -> ServingError:
        return internal(
            f"model instance '{self._name}': its logits are not finite (NaN or infinite) after {tokens} new "
            "tokens; its weights, or its dtype for this input, make them so",
            FailureReason.BACKEND,
        )
