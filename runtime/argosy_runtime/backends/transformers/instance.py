"""One language model, on one device or split over several, behind the continuous batch."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import transformers

from argosy_runtime.backends.contract import Host, InstanceSpec, Responder
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError, internal
from argosy_runtime.failures.translation import failure
from argosy_runtime.language import GenerationRequest, ResponseBuilder
from argosy_runtime.language.chat import TRUST_REQUESTS
from argosy_runtime.language.prompts import Prompts
from argosy_runtime.messages import InferRequest, InferResponse

from . import autofill
from .answers import Answer
from .engine import Engine, Ticket
from .generation import Abilities, Generation, generation
from .opening import Opened, devices_of, max_positions, open_model
from .ranks import Ranks
from .sampling.seeds import Seeds


class GenerationInstance:
    """A loaded model. `execute` only queues: answers come from the batch."""

    def __init__(self, spec: InstanceSpec, opened: Opened, tokenizer: Any, engine: Engine, ranks: Ranks | None) -> None:
        self._spec = spec
        self._tokenizer = tokenizer
        self._engine = engine
        self._ranks = ranks
        self._abilities = _abilities(opened, tokenizer)
        trusts, vocabulary = Parameters(spec.config).flag(TRUST_REQUESTS, False), self._abilities.vocabulary
        self._prompts = Prompts(spec.config.name, tokenizer, vocabulary, trusts_templates=trusts)
        self._seeds = Seeds(Parameters(spec.config).integer("random_seed", -1))
        self._decoupled = spec.config.model_transaction_policy.decoupled

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> None:
        """Let every request join the batch; one that cannot is answered at once and hinders no other."""
        for index, request in enumerate(requests):
            fail = partial(self._refuse, request, index, responder)
            try:
                self._begin(request, index, responder, fail)
            except Exception as error:
                fail(error)

    def close(self) -> None:
        """Stop the batch and release the model."""
        self._prompts.close()
        if self._ranks is not None:
            self._ranks.expect_end()
        self._engine.close()
        if self._ranks is not None:
            self._ranks.close()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _begin(
        self, request: InferRequest, index: int, responder: Responder, fail: Callable[[Exception], None]
    ) -> None:
        read = GenerationRequest.read(request, decoupled=self._decoupled)
        # The seed is that of the request's place in the series, however long its prompt takes.
        work = partial(self._prepare, read, self._seeds.next(), index, responder)
        self._prompts.prepare(read.prompt, work, fail)

    def _prepare(
        self, read: GenerationRequest, seed: int, index: int, responder: Responder, input_ids: list[int]
    ) -> None:
        """Let a request join the batch. Raises any exception for one that does not fit."""
        parsed = generation(read, input_ids, self._abilities, seed)
        text = self._prompts.text(read.prompt, parsed.input_ids) if read.repeats_prompt else ""
        builder = ResponseBuilder(read, str(self._spec.version), text)
        answer = Answer(parsed, responder, index, builder, self._tokenizer, self._spec.name)
        for choice in range(read.sampling.n):
            if parsed.max_new_tokens:
                self._submit(parsed, answer, choice)
            else:
                answer.advance(choice, (), (), True)

    def _submit(self, parsed: Generation, answer: Answer, choice: int) -> None:
        self._engine.submit(
            Ticket(
                on_tokens=lambda tokens, logprobs, final: answer.advance(choice, tokens, logprobs, final),
                on_cached=answer.cached if choice == 0 else lambda _: None,
                on_error=answer.fail,
                is_cancelled=answer.is_cancelled,
            ),
            parsed.input_ids,
            max_new_tokens=parsed.max_new_tokens,
            streaming=parsed.streaming,
            eos_token_id=[*parsed.ends, parsed.marker],
            **parsed.settings[choice],
        )

    def _refuse(self, request: InferRequest, index: int, responder: Responder, error: Exception) -> None:
        """Answer a request that cannot join the batch."""
        if not isinstance(error, ServingError):
            error = failure(f"model instance '{self._spec.name}': {error}", error)
        version = str(self._spec.version)
        responder.send(index, InferResponse(request.model_name, version, request.id, error=error))


def _abilities(opened: Opened, tokenizer: Any) -> Abilities:
    text = opened.model.config.get_text_config()
    positions, cache = max_positions(text), opened.size.tokens
    larger = "; its cache holds no more, so raise the parameter kv_cache_memory or num_blocks"
    return Abilities(
        vocabulary=int(text.vocab_size),
        context=min(positions, cache),
        ends=opened.ends,
        has_tokenizer=tokenizer is not None,
        samples=opened.sampler.samples,
        has_logprobs=opened.sampler.has_logprobs,
        larger=larger if cache < positions else "",
    )


def open_instance(spec: InstanceSpec, host: Host) -> GenerationInstance:
    """Load the weights, reserve the cache, start the batch. Raises ServingError."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return open_on(spec, host, devices_of(spec, gpus))


def open_on(spec: InstanceSpec, host: Host, devices: tuple[str, ...]) -> GenerationInstance:
    """Return the same on these devices; of several each has a process of its own."""
    ranks = Ranks.start(spec, devices) if len(devices) > 1 else None
    try:
        opened = open_model(spec, devices)
        tokenizer = _tokenizer(spec)
    except BaseException:
        if ranks is not None:
            ranks.kill()
        raise
    split = ", each with a share of every layer" if ranks is not None else ""
    taken = opened.size.tokens * opened.bytes_per_token
    host.log(
        "info",
        f"model instance '{spec.name}' runs on {', '.join(devices)}{split}; it keeps {opened.size.tokens} tokens of "
        f"cache, {taken} bytes",
    )
    engine = Engine(spec.name, opened.manager, opened.sampler.cached, host)
    return GenerationInstance(spec, opened, tokenizer, engine, ranks)


def _tokenizer(spec: InstanceSpec) -> Any:
    if not autofill.has_tokenizer(spec.version_dir):
        return None
    try:
        return transformers.AutoTokenizer.from_pretrained(str(spec.version_dir), local_files_only=True)
    except Exception as error:
        raise internal(f"failed to load '{spec.version_dir}' for model '{spec.config.name}': {error}") from error
