"""One language model, on one device or split over several, behind the continuous batch."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import transformers

from argosy_runtime.backends.contract import Host, InstanceSpec, Responder
from argosy_runtime.backends.generation.answers import Answer
from argosy_runtime.backends.generation.autofill import has_tokenizer
from argosy_runtime.backends.generation.choices import Step
from argosy_runtime.backends.generation.defaults import model_defaults
from argosy_runtime.backends.generation.generation import Generation
from argosy_runtime.backends.generation.requests import Begin, Requests
from argosy_runtime.backends.generation.work import Work
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import FailureReason, internal
from argosy_runtime.language import GenerationRequest, logprob_entry
from argosy_runtime.language.deltas import Position
from argosy_runtime.messages import InferRequest

from .engine import Engine
from .generation import LACKING, Abilities, generation
from .opening import Opened, devices_of, max_positions, open_model
from .ranks import Ranks
from .sampling.processors import TokenLogprobs
from .sampling.seeds import Seeds


class GenerationInstance:
    """A loaded model. `execute` only queues: answers come from the batch."""

    def __init__(
        self, spec: InstanceSpec, abilities: Abilities, tokenizer: Any, engine: Engine, ranks: Ranks | None
    ) -> None:
        self._name = spec.name
        self._engine = engine
        self._ranks = ranks
        self._abilities = abilities
        self._requests = Requests(spec, tokenizer, abilities, _position_of)
        self._seeds = Seeds(Parameters(spec.config).integer("random_seed", -1))

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> None:
        """Let every request join the batch; one that cannot is answered at once and hinders no other."""
        self._requests.read(requests, responder, self._begin)

    def close(self) -> None:
        """Stop the batch and release the model."""
        self._requests.close()
        if self._ranks is not None:
            self._ranks.expect_end()
        self._engine.close()
        if self._ranks is not None:
            self._ranks.close()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _begin(self, request: GenerationRequest) -> Begin:
        # The seed is that of the request's place in the series, however long its prompt takes.
        return partial(self._join, request, self._seeds.next())

    def _join(self, request: GenerationRequest, seed: int, index: int, responder: Responder, ids: list[int]) -> None:
        """Let a request join the batch. Raises any exception for one that does not fit."""
        parsed = generation(request, ids, self._abilities, seed)
        self._requests.answer(parsed, index, responder, partial(self._submit, parsed))

    def _submit(self, parsed: Generation, answer: Answer, choice: int) -> None:
        self._engine.submit(
            Work(
                prompt_tokens=len(parsed.input_ids),
                on_step=partial(self._advance, answer, choice),
                on_error=answer.fail,
                is_cancelled=answer.is_cancelled,
            ),
            parsed.input_ids,
            max_new_tokens=parsed.max_new_tokens,
            streaming=parsed.request.stream or bool(parsed.request.sampling.stops),
            eos_token_id=[*parsed.ends, self._abilities.vocabulary],
            **parsed.settings[choice],
        )

    def _advance(self, answer: Answer, choice: int, step: Step) -> bool:
        """Pass on what the batch tells of a choice. Return whether it has ended."""
        if not step.tokens or step.tokens[-1] != self._abilities.vocabulary:
            return answer.advance(choice, step)
        error = internal(
            f"model instance '{self._name}': its logits are not finite (NaN or infinite) after {len(step.tokens) - 1} "
            "new tokens; its weights, or its dtype for this input, make them so",
            FailureReason.BACKEND,
        )
        answer.fail(error)
        return True


def _abilities(spec: InstanceSpec, opened: Opened, tokenizer: Any, host: Host) -> Abilities:
    text = opened.model.config.get_text_config()
    positions, cache = max_positions(text), opened.size.tokens
    larger = "; its cache holds no more, so raise the parameter kv_cache_memory or num_blocks"
    samples = opened.sampler.samples
    return Abilities(
        vocabulary=int(text.vocab_size),
        context=min(positions, cache),
        ends=opened.ends,
        has_tokenizer=tokenizer is not None,
        samples=samples,
        has_logprobs=opened.sampler.has_logprobs,
        larger=larger if cache < positions else "",
        defaults=model_defaults(spec, [spec.version_dir], LACKING, host) | ({} if samples else {"temperature": 0.0}),
    )


def _position_of(tokenizer: Any, token: int, logprobs: TokenLogprobs, _count: int) -> Position:
    """Return what is told of a token that was chosen: it first, then the likeliest ones."""
    entries = {token: logprob_entry(tokenizer, token, logprobs.logprob, logprobs.rank)}
    for rank, (other, logprob) in enumerate(logprobs.likeliest, 1):
        entries.setdefault(other, logprob_entry(tokenizer, other, logprob, rank))
    return entries


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
        abilities = _abilities(spec, opened, tokenizer, host)
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
    engine = Engine(spec.name, opened.manager, opened.sampler.cached, host, opened.size.tokens)
    return GenerationInstance(spec, abilities, tokenizer, engine, ranks)


def _tokenizer(spec: InstanceSpec) -> Any:
    if not has_tokenizer(spec.version_dir):
        return None
    try:
        return transformers.AutoTokenizer.from_pretrained(str(spec.version_dir), local_files_only=True)
    except Exception as error:
        raise internal(f"failed to load '{spec.version_dir}' for model '{spec.config.name}': {error}") from error
