"""The responses of one request while the engine generates."""

from typing import Any

from argosy_runtime.backends.contract import Responder
from argosy_runtime.errors import ServingError, internal, unavailable
from argosy_runtime.language import Delta, GenerationRequest, ResponseBuilder
from argosy_runtime.language.tensors import OUTPUT_IDS, TEXT_OUTPUT
from argosy_runtime.messages import InferResponse

from .deltas import TokenBytes, delta_of, merge, prompt_positions


class GenerationStream:
    """One request for text, and the deltas of its choices that have not been sent.

    They wait while the client reads slowly; leave with later ones, and the engine goes on. `duplicates`: each
    generated choice stands for so many.
    """

    __slots__ = (
        "_builder",
        "_deltas",
        "_duplicates",
        "_empty",
        "_index",
        "_responder",
        "_sends_tokens",
        "_stream",
        "_token_bytes",
        "is_over",
    )

    def __init__(
        self,
        request: GenerationRequest,
        builder: ResponseBuilder,
        token_bytes: TokenBytes,
        responder: Responder,
        index: int,
    ) -> None:
        self._token_bytes = token_bytes
        self._builder = builder
        self._responder = responder
        self._index = index
        self._stream = request.stream
        self._duplicates = 1
        self._empty = request.sampling.max_tokens == 0
        self._sends_tokens = request.wants(OUTPUT_IDS) or not request.wants(TEXT_OUTPUT)
        self._deltas: dict[int, Delta] = {}
        self.is_over = False

    def duplicate_choices(self, duplicates: int) -> None:
        """Let each generated choice stand for so many."""
        self._duplicates = duplicates

    def is_cancelled(self) -> bool:
        """Return whether the client has gone."""
        return self._responder.is_cancelled(self._index)

    def take(self, output: Any) -> None:
        """Take a `RequestOutput`. Raises ServingError where it ends by an error of the engine."""
        builder = self._builder
        builder.num_input_tokens = len(output.prompt_token_ids or ())
        builder.num_cached_tokens = output.num_cached_tokens or 0
        if output.prompt_logprobs:
            builder.prompt_logprobs = prompt_positions(output.prompt_logprobs, self._token_bytes)
        for choice in output.outputs:
            delta = delta_of(choice, self._token_bytes)
            _raise_if_failed(delta)
            self._add(delta)
        self.is_over = bool(output.finished)

    def _add(self, delta: Delta) -> None:
        if self._empty:
            delta.text, delta.token_ids, delta.logprobs = "", [], None
            delta.finish_reason, delta.stop_reason = "length", None
        before = self._deltas.get(delta.index)
        if before is None:
            self._deltas[delta.index] = delta
        else:
            merge(before, delta)

    def flush(self) -> None:
        """Send the deltas that are due, unless the client reads slowly."""
        if not self.is_over and self._responder.is_paused(self._index):
            return
        for response in self._responses():
            self._responder.send(self._index, response, wait=False)

    def fail(self, error: ServingError) -> None:
        """Send the error as the last response."""
        self.is_over = True
        self._responder.send(self._index, self._builder.failure(error), wait=False)

    def _responses(self) -> list[InferResponse]:
        """Return the responses that are due: one per choice of a stream, else one of all choices at the end."""
        if not self._stream:
            return [self._builder.response(self._choices(), True)] if self.is_over else []
        choices = [delta for delta in self._choices() if self._is_due(delta)]
        self._deltas = {index: delta for index, delta in self._deltas.items() if not self._is_due(delta)}
        last = len(choices) - 1
        responses = [self._builder.response([delta], self.is_over and at == last) for at, delta in enumerate(choices)]
        if self.is_over and not choices:
            responses.append(InferResponse(final=True))
        return responses

    def _is_due(self, delta: Delta) -> bool:
        """Return whether a delta is worth a response: without new text, only tokens that were asked for are."""
        return bool(delta.text or delta.finish_reason or (delta.token_ids and self._sends_tokens))

    def _choices(self) -> list[Delta]:
        deltas = [self._deltas[index] for index in sorted(self._deltas)]
        if self._duplicates == 1:
            return deltas
        # The only generated choice is each of them.
        return [
            Delta(
                index,
                delta.text,
                delta.token_ids,
                delta.finish_reason,
                delta.stop_reason,
                delta.cumulative_logprob,
                delta.logprobs,
            )
            for delta in deltas
            for index in range(self._duplicates)
        ]


def _raise_if_failed(delta: Delta) -> None:
    if delta.finish_reason == "error":
        raise internal("the engine could not finish the answer; send the request again")
    if delta.finish_reason == "abort":
        raise unavailable("the engine has ended the answer: it is being put to sleep or ends")
