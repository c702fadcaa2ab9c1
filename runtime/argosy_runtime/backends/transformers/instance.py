"""One language model on one device, behind the continuous batch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.generation.configuration_utils import ContinuousBatchingConfig

from argosy_runtime.backends.contract import Host, InstanceSpec, Responder
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError, internal, invalid, unavailable, unsupported
from argosy_runtime.messages import InferRequest

from . import autofill, generation, sizing
from .answers import Answer
from .engine import Engine, Ticket
from .generation import Generation, Sampling
from .sizing import CacheSize

_ABSENT = 0.5  # a value that makes the library keep its per-request warpers; every request says its own


class GenerationInstance:
    """A loaded model. `execute` only queues: answers come from the batch."""

    def __init__(self, spec: InstanceSpec, model: Any, tokenizer: Any, size: CacheSize, engine: Engine) -> None:
        self._spec = spec
        self._tokenizer = tokenizer
        self._size = size
        self._engine = engine
        text = model.config.get_text_config()
        self._vocabulary = int(text.vocab_size)
        self._positions = max_positions(text)
        parameters = Parameters(spec.config)
        self._seed = parameters.integer("random_seed", -1)
        self._greedy_only = is_greedy_only(spec.config.name, parameters)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> None:
        """Let every request join the batch; one that cannot is answered at once and hinders no other."""
        for index, request in enumerate(requests):
            self._begin(request, index, responder)

    def close(self) -> None:
        """Stop the batch and release the model."""
        self._engine.close()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _begin(self, request: InferRequest, index: int, responder: Responder) -> None:
        version = self._spec.version
        empty = Generation([], 0, Sampling(), None, False)
        answer = Answer(request, version, empty, None)
        try:
            asked = self._asked(request)
            answer = Answer(request, version, asked, self._decode if self._tokenizer is not None else None)
            if asked.max_new_tokens == 0:
                self._send(answer, [], True, index, responder)
                return
            self._engine.submit(
                Ticket(
                    on_tokens=lambda tokens, final: self._send(answer, tokens, final, index, responder),
                    on_error=lambda error: responder.send(index, answer.failure(error)),
                    is_cancelled=lambda: responder.is_cancelled(index),
                ),
                asked.input_ids,
                max_new_tokens=asked.max_new_tokens,
                streaming=asked.streaming,
                eos_token_id=None if asked.end_ids is None else list(asked.end_ids) or -1,
                **self._warpers(asked.sampling),
            )
        except ServingError as error:
            responder.send(index, answer.failure(error))
        except Exception as error:
            responder.send(index, answer.failure(internal(f"model instance '{self._spec.name}': {error}")))

    def _send(self, answer: Answer, tokens: Sequence[int], final: bool, index: int, responder: Responder) -> None:
        response = answer.response(tokens, final)
        if response is not None:
            responder.send(index, response)

    def _asked(self, request: InferRequest) -> Generation:
        if "text_input" in request.inputs:
            if self._tokenizer is None:
                raise invalid(f"model '{request.model_name}' has no tokenizer, so it takes input_ids, not text_input")
            asked = generation.from_text(request, self._tokenizer.encode)
        else:
            asked = generation.from_ids(request)
        self._check(request, asked)
        return asked

    def _check(self, request: InferRequest, asked: Generation) -> None:
        """Refuse what the batch cannot hold: one such request would end it for everyone."""
        about = f"model '{request.model_name}': "
        if not asked.input_ids:
            raise invalid(f"{about}the prompt is empty")
        for token in asked.input_ids:
            if not 0 <= token < self._vocabulary:
                raise invalid(f"{about}input id {token} is not in the vocabulary of {self._vocabulary} tokens")
        total = len(asked.input_ids) + asked.max_new_tokens
        lengths = f"{len(asked.input_ids)} prompt tokens and {asked.max_new_tokens} new ones are {total}, "
        if total > self._positions:
            raise invalid(f"{about}{lengths}more than the model's {self._positions}")
        if total > self._size.tokens:
            raise invalid(
                f"{about}{lengths}more than the {self._size.tokens} its cache holds; "
                "raise the parameter kv_cache_memory or num_blocks"
            )
        self._check_sampling(about, asked.sampling)

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
        """The per-request settings of the library's warpers; the likeliest token is a choice among one."""
        if self._greedy_only:
            return {}
        if sampling.is_greedy:
            return {"temperature": 1.0, "top_k": 1, "top_p": 1.0}
        return {
            "temperature": sampling.temperature if sampling.temperature is not None else 1.0,
            "top_k": min(sampling.top_k or self._vocabulary, self._vocabulary),
            "top_p": sampling.top_p if sampling.top_p is not None else 1.0,
        }

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))


def open_instance(spec: InstanceSpec, host: Host) -> GenerationInstance:
    """Load the weights, reserve the cache, start the batch. Raises ServingError."""
    device = _device(spec)
    parameters = Parameters(spec.config)
    try:
        model = _model(spec.version_dir, parameters, device)
        tokenizer = _tokenizer(spec.version_dir)
    except Exception as error:
        raise internal(f"failed to load '{spec.version_dir}' for model '{spec.config.name}': {error}") from error
    text = model.config.get_text_config()
    defaults = sizing.ON_GPU if device.type == "cuda" else sizing.ON_CPU
    per_token = bytes_per_token(text, model.dtype.itemsize)
    size = sizing.cache_size(spec.config.name, parameters, per_token, max_positions(text), defaults)
    host.log(
        "info",
        f"model instance '{spec.name}' keeps {size.tokens} tokens of cache, {size.tokens * per_token} bytes",
    )
    try:
        manager = _manager(spec, model, parameters, size)
    except Exception as error:
        raise internal(f"model instance '{spec.name}' cannot start generating: {error}") from error
    return GenerationInstance(spec, model, tokenizer, size, Engine(spec.name, manager))


def bytes_per_token(text: Any, element_bytes: int) -> int:
    """What one token takes in the cache: a key and a value of every head of every layer."""
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return int(2 * text.num_hidden_layers * heads * head_dim * element_bytes)


def max_positions(text: Any) -> int:
    """The longest sequence the model knows, in tokens."""
    return int(getattr(text, "max_position_embeddings", None) or 2**31 - 1)


def is_greedy_only(model: str, parameters: Parameters) -> bool:
    """Whether the configuration rules sampling out."""
    decoding = parameters.text("decoding", "sampling")
    if decoding not in ("sampling", "greedy"):
        raise invalid(f"model '{model}': parameter 'decoding' is '{decoding}', expected sampling or greedy")
    return decoding == "greedy"


def _device(spec: InstanceSpec) -> torch.device:
    if spec.kind != "KIND_GPU":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise unavailable(
            f"model instance '{spec.name}' (KIND_GPU) needs CUDA, which this PyTorch ({torch.__version__}) cannot use "
            "here; give the model an instance group of KIND_CPU"
        )
    return torch.device("cuda", spec.device_id)


def _model(version_dir: Path, parameters: Parameters, device: torch.device) -> Any:
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(version_dir),
        dtype=parameters.text("dtype", "auto"),
        attn_implementation=parameters.text("attn_implementation") or None,
        local_files_only=True,
    )
    return model.to(device).eval()


def _tokenizer(version_dir: Path) -> Any:
    if not autofill.has_tokenizer(version_dir):
        return None
    return transformers.AutoTokenizer.from_pretrained(str(version_dir), local_files_only=True)


def _manager(spec: InstanceSpec, model: Any, parameters: Parameters, size: CacheSize) -> Any:
    greedy = is_greedy_only(spec.config.name, parameters)
    seed = parameters.integer("random_seed", -1)
    known = model.generation_config
    settings = transformers.GenerationConfig(
        do_sample=not greedy,
        eos_token_id=known.eos_token_id if known.eos_token_id is not None else -1,
        pad_token_id=known.pad_token_id,
        **({} if greedy else {"temperature": _ABSENT, "top_k": 1, "top_p": _ABSENT}),
    )
    batching = ContinuousBatchingConfig(
        page_size=size.page_size,
        num_blocks=size.num_blocks,
        max_batch_tokens=size.max_batch_tokens,
        max_requests_per_batch=parameters.integer("max_requests_per_batch", 256, minimum=1),
        per_request_processors=not greedy,
        seed=seed if seed >= 0 else None,
        auto_switch_to_flash=False,
        use_cuda_graph=parameters.flag("use_cuda_graph", False) if "use_cuda_graph" in parameters else None,
        use_async_batching=(
            parameters.flag("use_async_batching", False) if "use_async_batching" in parameters else None
        ),
    )
    manager = model.init_continuous_batching(settings, batching)
    manager.warmup()  # reserves the cache now, so that what does not fit is said while loading
    return manager
