"""Sampling parameters in vLLM's terms."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from argosy_runtime.backends.vllm.opening.library import Library
from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.language import Sampling
from argosy_runtime.language.sampling import DEFAULT_MAX_TOKENS, StructuredOutputs

_OF_MODEL: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
)
"""Parameters whose defaults a model's generation_config.json may have."""
_SAME: Final = (
    "n",
    "min_tokens",
    "ignore_eos",
    "stop_token_ids",
    "logit_bias",
    "bad_words",
    "logprobs",
    "prompt_logprobs",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "include_stop_str_in_output",
    "allowed_token_ids",
    "detokenize",
)
_MOST_BIAS: Final = 100.0
_GREEDY_BELOW: Final = 1e-5
"""Temperatures below it are 0: in effect they choose the likeliest token, and vLLM would raise them to 0.01."""


def sampling_arguments(sampling: Sampling, defaults: Mapping[str, Any], length: int, longest: int) -> dict[str, Any]:
    """Return the arguments of vLLM's `SamplingParams`, but for structured outputs and the kind of output.

    `defaults` are the model's. `length` is that of the prompt, `longest` that of prompt and answer together, in tokens.
    Raises ServingError (INVALID_ARG) where they do not fit.
    """
    arguments: dict[str, Any] = {name: getattr(sampling, name) for name in _SAME}
    for name in _OF_MODEL:
        own = getattr(sampling, name)
        value = defaults.get(name) if own is None else own
        if value is not None:
            arguments[name] = value
    arguments["max_tokens"] = _max_tokens(sampling, defaults, length, longest)
    arguments["stop"] = list(sampling.stops)
    if sampling.logit_bias is not None:
        biases = sampling.logit_bias.items()
        arguments["logit_bias"] = {token: max(min(bias, _MOST_BIAS), -_MOST_BIAS) for token, bias in biases}
    if sampling.seed is not None:
        # vLLM's generators take 64 bits with a sign; seeds of TensorRT-LLM's clients have none.
        arguments["seed"] = sampling.seed - 2**64 if sampling.seed >= 2**63 else sampling.seed
    if arguments.get("temperature", 1.0) < _GREEDY_BELOW:
        arguments["temperature"] = 0.0
        arguments["n"] = 1  # the likeliest tokens are the same for every choice
    return arguments


def duplicates(sampling: Sampling, arguments: Mapping[str, Any]) -> int:
    """Return how many choices each generated one stands for."""
    return sampling.n // int(arguments["n"])


def check_length(length: int, longest: int) -> None:
    """Raise ServingError (INVALID_ARG) for a prompt that leaves no room for an answer."""
    if not length:
        raise invalid("the prompt is empty: it has no tokens")
    if length >= longest:
        raise too_long(f"the prompt has {length} tokens, and the answer at least 1", longest)


def too_long(problem: str, longest: int) -> ServingError:
    """Return the error of a request that does not fit the context."""
    return invalid(f"this model's maximum context length is {longest} tokens, but {problem}")


def truncated(ids: list[int], sampling: Sampling, longest: int) -> list[int]:
    """Return the last tokens of a prompt, as many as the request asks for."""
    limit = sampling.truncate_prompt_tokens
    if limit is None:
        return ids
    if limit == -1:
        limit = longest - max(1, min(sampling.max_tokens or 1, longest - 1))
    return ids[-limit:]


def sampling_params(
    library: Library, arguments: dict[str, Any], outputs: StructuredOutputs | None, stream: bool
) -> Any:
    """Return vLLM's `SamplingParams`. Raises its exceptions for what it refuses."""
    kind = library.RequestOutputKind
    constraint = None
    if outputs is not None:
        fields = msgspec.to_builtins(outputs)
        if isinstance(fields.get("structural_tag"), dict):
            fields["structural_tag"] = msgspec.json.encode(fields["structural_tag"]).decode()
        constraint = library.StructuredOutputsParams(**fields)
    return library.SamplingParams(
        **arguments,
        structured_outputs=constraint,
        output_kind=kind.DELTA if stream else kind.FINAL_ONLY,
        skip_clone=True,
    )


def _max_tokens(sampling: Sampling, defaults: Mapping[str, Any], length: int, longest: int) -> int:
    """Return the limit of new tokens, at least 1, which an answer of none needs to look at its prompt."""
    rest = longest - length
    if sampling.max_tokens is None:
        return min(rest, int(defaults.get("max_tokens", rest)))
    if sampling.max_tokens > rest:
        if sampling.max_tokens == DEFAULT_MAX_TOKENS:
            return rest
        raise too_long(f"the prompt has {length} tokens, and 'max_tokens' asks for {sampling.max_tokens}", longest)
    return max(sampling.max_tokens, 1)
