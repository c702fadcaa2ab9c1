"""What TensorRT-LLM is asked for a request: arguments of its `SamplingParams`, as plain values."""

import json
import secrets
from dataclasses import dataclass
from typing import Any, Final

from argosy_runtime.backends.generation import generation as generating
from argosy_runtime.backends.generation.generation import Generation, check_lacking, ends_of, logprob_count
from argosy_runtime.errors import invalid, unsupported
from argosy_runtime.language import GenerationRequest, Sampling, StructuredOutputs
from argosy_runtime.language.limits import answer_length, check_length, truncated

BIAS: Final = "embedding_bias"
GUIDE: Final = "guided_decoding"
_SEEDS: Final = 2**63
_LACKING: Final = {
    "prompt_logprobs": None,
    "allowed_token_ids": None,
    "priority": 0,
    "spaces_between_special_tokens": True,
}
"""Parameters that neither way has, with the values that ask for nothing."""
_OF_ENGINES: Final = {
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "bad_words": [],
}
"""Parameters that the sampler of checkpoints lacks, unless `sampler_type` is TRTLLMSampler."""
FULL_SAMPLER: Final = "TRTLLMSampler"


@dataclass(frozen=True, slots=True)
class Abilities(generating.Abilities):
    """What a loaded model can take. `guided` is the backend of guided decoding, "" without one. `full_sampler`: it has
    penalties.
    """

    guided: str
    engine: bool
    full_sampler: bool


def lacking(full_sampler: bool) -> dict[str, Any]:
    """Return the parameters that a model lacks, with the values that ask for nothing."""
    return _LACKING if full_sampler else {**_LACKING, **_OF_ENGINES}


def generation(request: GenerationRequest, input_ids: list[int], abilities: Abilities) -> Generation:
    """Return what is asked for a prompt. Raises ServingError, INVALID_ARG or UNSUPPORTED, for what the engine cannot
    do.
    """
    sampling, about = request.sampling, f"model '{request.model_name}': "
    _check_supported(about, sampling, abilities)
    input_ids = truncated(input_ids, sampling, abilities.context)
    new = _new_tokens(about, len(input_ids), sampling, abilities)
    ends = ends_of(sampling, abilities)
    count = logprob_count(about, request)
    common = {
        **_ending(sampling, ends[0] | ends[1], abilities),
        **_constraints(about, sampling, abilities),
        "max_tokens": new,
        "detokenize": False,
        **({} if count is None else {"logprobs": max(count, 1)}),
    }
    settings = [{**common, **_drawing(sampling, choice)} for choice in range(sampling.n)]
    return Generation.of(request, input_ids, new, ends, count, settings)


def _check_supported(about: str, sampling: Sampling, abilities: Abilities) -> None:
    without = f"{about}backend 'tensorrtllm' "
    check_lacking(without, sampling, _LACKING, " here")
    if not abilities.full_sampler:
        way = f" here, unless llm_args.yaml has sampler_type: {FULL_SAMPLER}"
        check_lacking(without, sampling, _OF_ENGINES, way)
    if (sampling.stops or sampling.bad_words) and not abilities.has_tokenizer:
        raise invalid(f"{about}it has no tokenizer, so it takes no 'stop' and no 'bad_words'; send stop_token_ids")
    if sampling.min_tokens and sampling.stop_token_ids:
        raise unsupported(f"{about}backend 'tensorrtllm' has no 'min_tokens' together with 'stop_token_ids'")


def _new_tokens(about: str, prompt: int, sampling: Sampling, abilities: Abilities) -> int:
    default = abilities.defaults.get("max_tokens")
    if abilities.context:
        return answer_length(sampling, prompt, abilities.context, default)
    check_length(prompt, prompt + 1)
    most = default if sampling.most_tokens is None else sampling.most_tokens
    if most is None:
        raise invalid(f"{about}its maximum context length is not known, so 'max_tokens' is required")
    return int(most)


def _ending(sampling: Sampling, ends: frozenset[int], abilities: Abilities) -> dict[str, Any]:
    """Return what ends an answer.

    With `min_tokens` the engine keeps from its end token alone, so the others are looked for among its tokens.
    """
    result: dict[str, Any] = {}
    if sampling.min_tokens:
        result["min_tokens"] = sampling.min_tokens
    elif ends:
        result["stop_token_ids"] = sorted(ends)
    if sampling.ignore_eos:
        result["ignore_eos"] = True
    if not abilities.has_tokenizer:  # the engine would ask the tokenizer for it
        own = abilities.ends and not sampling.ignore_eos
        result["end_id"] = result["pad_id"] = min(abilities.ends) if own else -1
    return result


def _constraints(about: str, sampling: Sampling, abilities: Abilities) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if sampling.bad_words:
        result["bad"] = list(sampling.bad_words)
    if sampling.logit_bias:
        wrong = [token for token in sampling.logit_bias if token >= abilities.vocabulary]
        if wrong:
            raise invalid(f"{about}'logit_bias' has token {wrong[0]}, and the vocabulary {abilities.vocabulary} tokens")
        result[BIAS] = dict(sampling.logit_bias)
    for name in ("presence_penalty", "frequency_penalty", "repetition_penalty", "min_p"):
        value = getattr(sampling, name)
        if value is not None and value != _OF_ENGINES[name]:
            result[name] = value
    if sampling.structured_outputs is not None:
        result[GUIDE] = _guide(about, sampling.structured_outputs, abilities)
    return result


def _guide(about: str, outputs: StructuredOutputs, abilities: Abilities) -> dict[str, Any]:
    """Return the arguments of `GuidedDecodingParams`."""
    if not abilities.guided:
        raise unsupported(
            f"{about}guided decoding is off: load it with a tokenizer, and parameter guided_decoding_backend xgrammar"
        )
    if outputs.whitespace_pattern or outputs.disable_any_whitespace or outputs.disable_additional_properties:
        raise unsupported(f"{about}backend 'tensorrtllm' has no options of 'structured_outputs' but what is generated")
    if outputs.choice is not None:
        # xgrammar's form of a grammar; a quoted text there is written as in JSON
        return {"grammar": "root ::= " + " | ".join(json.dumps(text, ensure_ascii=False) for text in outputs.choice)}
    if outputs.structural_tag is not None:
        if abilities.engine:
            raise unsupported(f"{about}an engine has no 'structural_tag'; serve the checkpoint (backend: pytorch)")
        tag = outputs.structural_tag
        return {"structural_tag": tag if isinstance(tag, str) else json.dumps(tag)}
    return {outputs.kind: getattr(outputs, outputs.kind)}


def _drawing(sampling: Sampling, choice: int) -> dict[str, Any]:
    """Return how tokens are drawn. Without a seed TensorRT-LLM would draw the same for every request."""
    if sampling.is_greedy:
        return {"top_k": 1}
    seed = secrets.randbelow(_SEEDS) if sampling.seed is None else (sampling.seed + choice) % _SEEDS
    result: dict[str, Any] = {"seed": seed}
    if sampling.temperature is not None:
        result["temperature"] = sampling.temperature
    if sampling.top_k is not None and sampling.top_k > 0:
        result["top_k"] = sampling.top_k
    # neither of them would mean the likeliest token, whatever the temperature
    if sampling.top_p is not None or "top_k" not in result:
        result["top_p"] = 1.0 if sampling.top_p is None else sampling.top_p
    return result
