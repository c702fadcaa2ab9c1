"""What the library is asked for a request. Imports no torch."""

from dataclasses import dataclass
from typing import Any, Final

from argosy_runtime.errors import ServingError, invalid, unsupported
from argosy_runtime.language import GenerationRequest, Sampling
from argosy_runtime.language.limits import answer_length, truncated

from .sampling.seeds import key_of

MIN_TEMPERATURE: Final = 1e-5
"""What sampling divides by at least. The library divides in float32, which ends at 3.4e38: with a temperature of 1e-40
logits become infinite, their softmax is not a number, and the batch ends for every request. With this one, logits up to
1e33 stay finite, and tokens whose logits differ by 0.001 are already e^100 apart: in effect the
likeliest token."""
MOST_LOGPROBS: Final = 20
"""The largest `logprobs`, which is OpenAI's `top_logprobs`."""
_WITHOUT_EFFECT: Final = {
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "logit_bias": {},
    "bad_words": [],
    "prompt_logprobs": None,
    "allowed_token_ids": None,
    "structured_outputs": None,
    "lora_name": None,
    "priority": 0,
    "cache_salt": None,
    "spaces_between_special_tokens": True,
    "detokenize": True,
}
"""Parameters that this backend lacks, with the values that ask for nothing."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a loaded model can take. `context` is the most tokens of a prompt and its answer; `larger` says how to
    have more of them. `ends` are the model's own end tokens.
    """

    vocabulary: int
    context: int
    ends: frozenset[int]
    has_tokenizer: bool
    samples: bool
    has_logprobs: bool
    larger: str = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """One request. `ends` are the tokens that end it; `stop_ids` those of them that it names itself.

    `settings` are the library's, for each choice; `streaming` whether it tells of each token. `marker` is what it has
    in place of a token where the logits are not finite.
    """

    request: GenerationRequest
    input_ids: list[int]
    max_new_tokens: int
    ends: frozenset[int]
    stop_ids: frozenset[int]
    streaming: bool
    settings: list[dict[str, Any]]
    marker: int


def generation(request: GenerationRequest, input_ids: list[int], abilities: Abilities, seed: int) -> Generation:
    """Return what is asked for a prompt; `seed` is for requests without one.

    Raises ServingError, INVALID_ARG or UNSUPPORTED, for what the model cannot do. It would end the batch for all.
    """
    sampling = request.sampling
    about = f"model '{request.model_name}': "
    _check_supported(about, request, abilities)
    input_ids = truncated(input_ids, sampling, abilities.context)
    new = _new_tokens(len(input_ids), sampling, abilities)
    stop_ids = frozenset(sampling.stop_token_ids or ())
    own = frozenset[int]() if sampling.ignore_eos else abilities.ends
    common = _ends_from(about, sampling, len(input_ids), own, stop_ids)
    if (count := _logprobs(request)) is not None:
        common["logprobs"] = count
    seed = seed if sampling.seed is None else sampling.seed
    return Generation(
        request=request,
        input_ids=input_ids,
        max_new_tokens=new,
        ends=own | stop_ids,
        stop_ids=stop_ids - own,
        streaming=request.stream or bool(sampling.stops),
        settings=[{**common, **_warpers(sampling, abilities, seed, choice)} for choice in range(sampling.n)],
        marker=abilities.vocabulary,
    )


def is_greedy(sampling: Sampling) -> bool:
    """Return whether no token is drawn at random: also where a request has no parameter that makes it random."""
    samples = bool(sampling.temperature) or sampling.top_p is not None or (sampling.top_k or 0) > 0
    return sampling.is_greedy or not samples


def _check_supported(about: str, request: GenerationRequest, abilities: Abilities) -> None:
    sampling = request.sampling
    for name, neutral in _WITHOUT_EFFECT.items():
        value = getattr(sampling, name)
        if value is not None and value != neutral:
            raise unsupported(f"{about}backend 'transformers' has no '{name}'; leave it out")
    if sampling.stops and not abilities.has_tokenizer:
        raise invalid(f"{about}it has no tokenizer, so it cannot stop at a text; send stop_token_ids")
    if not is_greedy(sampling) and not abilities.samples:
        raise unsupported(f"{about}it is loaded with decoding 'greedy' and does not sample")
    count = _logprobs(request)
    if count is not None and not 0 <= count <= MOST_LOGPROBS:
        raise invalid(f"{about}'logprobs' is {count}, expected 0 to {MOST_LOGPROBS}")
    if count is not None and not abilities.has_logprobs:
        raise unsupported(
            f"{about}it has no logprobs while it batches ahead of the results; set its parameters use_cuda_graph and "
            "use_async_batching to false"
        )


def _logprobs(request: GenerationRequest) -> int | None:
    """Return how many of the likeliest tokens to tell of next to the chosen one; None for not even that."""
    count = request.sampling.logprobs
    return 0 if count is None and request.wants("cumulative_logprob") else count


def _new_tokens(prompt: int, sampling: Sampling, abilities: Abilities) -> int:
    try:
        return answer_length(sampling, prompt, abilities.context)
    except ServingError as error:
        raise invalid(f"{error.message}{abilities.larger}") from None


def _ends_from(
    about: str, sampling: Sampling, prompt: int, own: frozenset[int], stop_ids: frozenset[int]
) -> dict[str, Any]:
    """Return the settings that keep an answer from ending before it has `min_tokens`."""
    if not sampling.min_tokens or not (own or stop_ids):
        return {}
    ends_from = {"ends_from": prompt + sampling.min_tokens}
    if not stop_ids:
        return ends_from
    if own or len(stop_ids) > 1:
        raise unsupported(f"{about}backend 'transformers' has no 'min_tokens' together with 'stop_token_ids'")
    return {**ends_from, "end_id": next(iter(stop_ids))}


def _warpers(sampling: Sampling, abilities: Abilities, seed: int, choice: int) -> dict[str, Any]:
    if not abilities.samples:
        return {}
    if is_greedy(sampling):
        return {"temperature": 1.0, "top_k": abilities.vocabulary, "top_p": 1.0}
    top_k = sampling.top_k if sampling.top_k is not None and sampling.top_k > 0 else abilities.vocabulary
    return {
        "temperature": max(sampling.temperature, MIN_TEMPERATURE) if sampling.temperature is not None else 1.0,
        "top_k": min(top_k, abilities.vocabulary),
        "top_p": sampling.top_p if sampling.top_p is not None else 1.0,
        "key": key_of(seed, choice),
    }
