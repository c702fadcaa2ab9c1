"""The responses of one request, as the tokens of its choices come."""

from typing import Any

from argosy_runtime.backends.contract import Responder
from argosy_runtime.errors import ServingError
from argosy_runtime.language import Delta, ResponseBuilder

from .choices import Choice, PositionOf, Step
from .generation import Generation


class Answer:
    """One request. Its methods are called by one thread at a time.

    A request that streams has a response for the delta of each choice, another one a single response.
    """

    def __init__(
        self,
        generation: Generation,
        responder: Responder,
        index: int,
        builder: ResponseBuilder,
        tokenizer: Any,
        position_of: PositionOf,
    ) -> None:
        self._stream = generation.request.stream
        self._responder = responder
        self._index = index
        self._builder = builder
        choices = range(generation.request.sampling.n)
        self._choices = [Choice(number, generation, tokenizer, position_of) for number in choices]
        self._deltas: dict[int, Delta] = {}
        self._has_ended = False
        builder.num_input_tokens = len(generation.input_ids)

    def is_cancelled(self) -> bool:
        """Return whether no more is needed of it."""
        return self._has_ended or self._responder.is_cancelled(self._index)

    def advance(self, choice: int, step: Step) -> bool:
        """Take what the engine tells of a choice, and send what is new. Return whether the choice has ended."""
        state = self._choices[choice]
        if choice == 0:  # the prompt of the others may be cached by this one
            self._builder.num_cached_tokens = max(self._builder.num_cached_tokens, step.cached)
        state.advance(step)
        if self._stream:
            self._send_delta(state)
        elif state.has_ended and (delta := state.delta()) is not None:
            self._deltas[choice] = delta
            if len(self._deltas) == len(self._choices):
                self._send([self._deltas[number] for number in range(len(self._choices))], True)
        return state.has_ended

    def fail(self, error: ServingError) -> None:
        """End the request with an error, unless it has ended."""
        if not self._has_ended:
            self._has_ended = True
            self._responder.send(self._index, self._builder.failure(error))

    def _send_delta(self, choice: Choice) -> None:
        if not choice.has_ended and self._responder.is_paused(self._index):
            return  # the next response has these tokens too, and no other request's answers wait
        delta = choice.delta()
        if delta is not None:
            self._send([delta], all(other.has_ended for other in self._choices))

    def _send(self, deltas: list[Delta], final: bool) -> None:
        if not self._has_ended:
            self._has_ended = final
            self._responder.send(self._index, self._builder.response(deltas, final))
