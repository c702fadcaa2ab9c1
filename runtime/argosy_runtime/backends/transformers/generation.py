"""What the library is asked for a request. Imports no torch."""

from dataclasses import dataclass
from typing import Any, Final

from argosy_runtime.backends.generation import generation as generating
from argosy_runtime.backends.generation.generation import Generation, check_lacking, ends_of, logprob_count
from argosy_runtime.errors import ServingError, invalid, unsupported
from argosy_runtime.language import GenerationRequest, Sampling
from argosy_runtime.language.limits import answer_length, truncated

from .sampling.seeds import key_of

LACKING: Final = {
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
class Abilities(generating.Abilities):
    """What a loaded model can take. `larger` says how to have a longer context."""

    samples: bool
    has_logprobs: bool
    larger: str = ""


def generation(request: GenerationRequest, input_ids: list[int], abilities: Abilities, seed: int) -> Generation:
    """Return what is asked for a prompt; `seed` is for requests without one.

    Raises ServingError, INVALID_ARG or UNSUPPORTED, for what the model cannot do. It would end the batch for all.
    """
    sampling = request.sampling
    about = f"model '{request.model_name}': "
    count = logprob_count(about, request)
    _check_supported(about, sampling, count, abilities)
    input_ids = truncated(input_ids, sampling, abilities.context)
    new = _new_tokens(len(input_ids), sampling, abilities)
    ends = ends_of(sampling, abilities)
    common = _ends_from(about, sampling, len(input_ids), *ends)
    if count is not None:
        common["logprobs"] = count
    seed = seed if sampling.seed is None else sampling.seed
    settings = [{**common, **_warpers(sampling, abilities, seed, choice)} for choice in range(sampling.n)]
    return Generation.of(request, input_ids, new, ends, count, settings)


def _check_supported(about: str, sampling: Sampling, logprobs: int | None, abilities: Abilities) -> None:
    check_lacking(f"{about}backend 'transformers' ", sampling, LACKING)
    if sampling.stops and not abilities.has_tokenizer:
        raise invalid(f"{about}it has no tokenizer, so it cannot stop at a text; send stop_token_ids")
    if not sampling.is_greedy and not abilities.samples:
        raise unsupported(f"{about}it is loaded with decoding 'greedy' and does not sample")
    if logprobs is not None and not abilities.has_logprobs:
        raise unsupported(
            f"{about}it has no logprobs while it batches ahead of the results; set its parameters use_cuda_graph and "
            "use_async_batching to false"
        )


def _new_tokens(prompt: int, sampling: Sampling, abilities: Abilities) -> int:
    try:
        return answer_length(sampling, prompt, abilities.context, abilities.defaults.get("max_tokens"))
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
    if sampling.is_greedy:
        return {"temperature": 1.0, "top_k": abilities.vocabulary, "top_p": 1.0}
    top_k = sampling.top_k if sampling.top_k is not None and sampling.top_k > 0 else abilities.vocabulary
    return {
        "temperature": sampling.temperature,  # never left out: `with_defaults`
        "top_k": min(top_k, abilities.vocabulary),
        "top_p": sampling.top_p if sampling.top_p is not None else 1.0,
        "key": key_of(seed, choice),
    }
