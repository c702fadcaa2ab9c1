"""The requests of one model on their way to its engine."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from argosy_runtime.backends.contract import InstanceSpec, Responder
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError
from argosy_runtime.failures.translation import failure
from argosy_runtime.language import GenerationRequest, ResponseBuilder
from argosy_runtime.language.chat import TRUST_REQUESTS
from argosy_runtime.language.prompts import Prompts
from argosy_runtime.messages import InferRequest, InferResponse

from .answers import Answer
from .choices import PositionOf, Step
from .generation import Abilities, Generation

Begin = Callable[[int, Responder, list[int]], None]
"""Lets a request with this index and these tokens of its prompt join the batch. May raise any exception."""
EXCLUDES_PROMPT = "exclude_input_in_output"
"""The parameter by which no text begins with its prompt, unless a request's input of this name is false."""


class Requests:
    """Reads a model's requests, refuses those that do not fit, and begins the answers to the others."""

    def __init__(self, spec: InstanceSpec, tokenizer: Any, abilities: Abilities, position_of: PositionOf) -> None:
        self._name = spec.name
        self._version = str(spec.version)
        self._tokenizer = tokenizer
        self._defaults = abilities.defaults
        self._position_of = position_of
        parameters, vocabulary = Parameters(spec.config), abilities.vocabulary
        trusts = parameters.flag(TRUST_REQUESTS, False)
        self._prompts = Prompts(spec.config.name, tokenizer, vocabulary, trusts_templates=trusts)
        self._decoupled = spec.config.model_transaction_policy.decoupled
        self._repeats_prompt = not parameters.flag(EXCLUDES_PROMPT, False)

    def read(
        self, requests: Sequence[InferRequest], responder: Responder, begin: Callable[[GenerationRequest], Begin]
    ) -> None:
        """Read requests, and begin each once its prompt is read; one that fails is answered and hinders no other.

        `begin` is called in the order of the requests, what it returns also later and on other threads.
        """
        for index, request in enumerate(requests):
            refuse = partial(self._refuse, request, index, responder)
            try:
                read = GenerationRequest.read(
                    request,
                    decoupled=self._decoupled,
                    repeats_prompt=self._repeats_prompt,
                    defaults=self._defaults,
                )
                is_cancelled = partial(responder.is_cancelled, index)
                self._prompts.prepare(read.prompt, partial(begin(read), index, responder), refuse, is_cancelled)
            except Exception as error:
                refuse(error)

    def answer(
        self,
        generation: Generation,
        index: int,
        responder: Responder,
        submit: Callable[[Answer, int], None],
    ) -> None:
        """Have each choice of a generation submitted; one that needs no token is answered at once."""
        request = generation.request
        text = self._prompts.text(request.prompt, generation.input_ids) if request.repeats_prompt else ""
        builder = ResponseBuilder(request, self._version, text)
        answer = Answer(generation, responder, index, builder, self._tokenizer, self._position_of)
        for choice in range(request.sampling.n):
            if generation.max_new_tokens:
                submit(answer, choice)
            else:
                answer.advance(choice, Step((), (), "length"))

    def close(self) -> None:
        """Wait for prompts that are being read, for a limited time. No request may come afterwards."""
        self._prompts.close()

    def _refuse(self, request: InferRequest, index: int, responder: Responder, error: Exception) -> None:
        """Answer a request that cannot join the batch."""
        if not isinstance(error, ServingError):
            error = failure(f"model instance '{self._name}': {error}", error)
        responder.send(index, InferResponse(request.model_name, self._version, request.id, error=error))
