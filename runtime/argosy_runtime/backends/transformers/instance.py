"""One language model, on one device or split over several, behind the continuous batch."""

from collections.abc import Sequence
from typing import Any

import torch
import transformers

from argosy_runtime.backends.contract import Host, InstanceSpec, Responder
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import FailureReason, ServingError, internal, invalid, unsupported
from argosy_runtime.failures.translation import failure
from argosy_runtime.messages import InferRequest

from . import autofill, generation
from .answers import Answer
from .engine import Engine, Ticket
from .generation import MIN_TEMPERATURE, Generation, Sampling
from .opening import Opened, devices_of, is_greedy_only, max_positions, open_model
from .ranks import Ranks


class GenerationInstance:
    """A loaded model. `execute` only queues: answers come from the batch."""

    def __init__(self, spec: InstanceSpec, opened: Opened, tokenizer: Any, engine: Engine, ranks: Ranks | None) -> None:
        self._spec = spec
        self._tokenizer = tokenizer
        self._size = opened.size
        self._engine = engine
        self._ranks = ranks
        text = opened.model.config.get_text_config()
        self._vocabulary = int(text.vocab_size)
        self._positions = max_positions(text)
        parameters = Parameters(spec.config)
        self._seed = parameters.integer("random_seed", -1)
        self._greedy_only = is_greedy_only(spec.config.name, parameters)
        self._decoupled = spec.config.model_transaction_policy.decoupled

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> None:
        """Let every request join the batch; one that cannot is answered at once and hinders no other."""
        for index, request in enumerate(requests):
            self._begin(request, index, responder)

    def close(self) -> None:
        """Stop the batch and release the model."""
        if self._ranks is not None:
            self._ranks.expect_end()
        self._engine.close()
        if self._ranks is not None:
            self._ranks.close()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _begin(self, request: InferRequest, index: int, responder: Responder) -> None:
        version = self._spec.version
        empty = Generation([], 0, Sampling(), None, False)
        answer = Answer(request, version, empty, None)
        try:
            parsed = self._parsed(request)
            answer = Answer(request, version, parsed, self._decode if self._tokenizer is not None else None)
            if parsed.max_new_tokens == 0:
                self._send(answer, [], True, index, responder)
                return
            self._engine.submit(
                Ticket(
                    on_tokens=lambda tokens, final: self._send(answer, tokens, final, index, responder),
                    on_error=lambda error: responder.send(index, answer.failure(error)),
                    is_cancelled=lambda: responder.is_cancelled(index),
                ),
                parsed.input_ids,
                max_new_tokens=parsed.max_new_tokens,
                streaming=parsed.streaming,
                eos_token_id=None if parsed.end_ids is None else [*parsed.end_ids, self._vocabulary],
                **self._warpers(parsed.sampling),
            )
        except ServingError as error:
            responder.send(index, answer.failure(error))
        except Exception as error:
            problem = failure(f"model instance '{self._spec.name}': {error}", error)
            responder.send(index, answer.failure(problem))

    def _send(self, answer: Answer, tokens: Sequence[int], final: bool, index: int, responder: Responder) -> None:
        if not final and responder.is_paused(index):
            return  # the next response has these tokens too, and no other request's answers wait
        if final and tokens and tokens[-1] == self._vocabulary:
            responder.send(index, answer.failure(self._not_finite(len(tokens) - 1)))
            return
        response = answer.response(tokens, final)
        if response is not None:
            responder.send(index, response)

    def _not_finite(self, tokens: int) -> ServingError:
        return internal(
            f"model instance '{self._spec.name}': its logits are not finite (NaN or infinite) after {tokens} new "
            "tokens; its weights, or its dtype for this input, make them so",
            FailureReason.BACKEND,
        )

    def _parsed(self, request: InferRequest) -> Generation:
        if "text_input" in request.inputs:
            if self._tokenizer is None:
                raise invalid(f"model '{request.model_name}' has no tokenizer, so it takes input_ids, not text_input")
            parsed = generation.from_text(request, self._tokenizer.encode)
        else:
            parsed = generation.from_ids(request)
        if parsed.streaming and not self._decoupled:
            raise invalid("Streaming is only supported in decoupled mode.")
        self._check(request, parsed)
        return parsed

    def _check(self, request: InferRequest, parsed: Generation) -> None:
        """Raise ServingError for a request that the batch cannot take: it would end the batch for all requests."""
        about = f"model '{request.model_name}': "
        if not parsed.input_ids:
            raise invalid(f"{about}the prompt is empty")
        for token in parsed.input_ids:
            if not 0 <= token < self._vocabulary:
                raise invalid(f"{about}input id {token} is not in the vocabulary of {self._vocabulary} tokens")
        total = len(parsed.input_ids) + parsed.max_new_tokens
        lengths = f"{len(parsed.input_ids)} prompt tokens and {parsed.max_new_tokens} new ones are {total}, "
        if total > self._positions:
            raise invalid(f"{about}{lengths}more than the model's {self._positions}")
        if total > self._size.tokens:
            raise invalid(
                f"{about}{lengths}more than the {self._size.tokens} its cache holds; "
                "raise the parameter kv_cache_memory or num_blocks"
            )
        self._check_sampling(about, parsed.sampling)

    def _check_sampling(self, about: str, sampling: Sampling) -> None:
        if sampling.is_greedy:
            return
        if self._greedy_only:
            raise unsupported(f"{about}it is loaded with decoding 'greedy' and does not sample")
        if sampling.seed is not None and sampling.seed != self._seed:
            configured = self._seed if self._seed >= 0 else "not set"
            raise unsupported(
                f"{about}random_seed is {sampling.seed}, but requests share one batch and its seed; "
                f"the model's parameter random_seed is {configured}"
            )

    def _warpers(self, sampling: Sampling) -> dict[str, Any]:
        """Return the per-request settings of the library's warpers; the likeliest token is a choice among one."""
        if self._greedy_only:
            return {}
        if sampling.is_greedy:
            return {"temperature": 1.0, "top_k": 1, "top_p": 1.0}
        return {
            "temperature": max(sampling.temperature, MIN_TEMPERATURE) if sampling.temperature is not None else 1.0,
            "top_k": min(sampling.top_k or self._vocabulary, self._vocabulary),
            "top_p": sampling.top_p if sampling.top_p is not None else 1.0,
        }

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))


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
    return GenerationInstance(spec, opened, tokenizer, Engine(spec.name, opened.manager, host), ranks)


def _tokenizer(spec: InstanceSpec) -> Any:
    if not autofill.has_tokenizer(spec.version_dir):
        return None
    try:
        return transformers.AutoTokenizer.from_pretrained(str(spec.version_dir), local_files_only=True)
    except Exception as error:
        raise internal(f"failed to load '{spec.version_dir}' for model '{spec.config.name}': {error}") from error
