"""Sampling parameters in vLLM's terms."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from argosy_runtime.backends.vllm.opening.library import Library
from argosy_runtime.language import Sampling, StructuredOutputs
from argosy_runtime.language.defaults import FIELDS
from argosy_runtime.language.limits import answer_length

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


def sampling_arguments(sampling: Sampling, length: int, longest: int, default: int | None = None) -> dict[str, Any]:
    """Return the arguments of vLLM's `SamplingParams`, but for structured outputs and the kind of output.

    `length` is that of the prompt, `longest` that of prompt and answer together, in tokens; `default` is the
    model's own limit of the answer. Raises ServingError (INVALID_ARG) where they do not fit.
    """
    arguments: dict[str, Any] = {name: getattr(sampling, name) for name in _SAME}
    arguments |= {name: value for name in FIELDS if (value := getattr(sampling, name)) is not None}
    # An answer of none needs one token to look at its prompt.
    arguments["max_tokens"] = max(answer_length(sampling, length, longest, default), 1)
    arguments["stop"] = list(sampling.stops)
    if sampling.logit_bias is not None:
        biases = sampling.logit_bias.items()
        arguments["logit_bias"] = {token: max(min(bias, _MOST_BIAS), -_MOST_BIAS) for token, bias in biases}
    if sampling.seed is not None:
        # vLLM's generators take 64 bits with a sign; seeds of TensorRT-LLM's clients have none.
        arguments["seed"] = sampling.seed - 2**64 if sampling.seed >= 2**63 else sampling.seed
    if sampling.is_greedy:
        arguments["temperature"] = 0.0  # vLLM would raise one close to it to 0.01
        arguments["n"] = 1  # the likeliest tokens are the same for every choice
    return arguments


def duplicates(sampling: Sampling, arguments: Mapping[str, Any]) -> int:
    """Return how many choices each generated one stands for."""
    return sampling.n // int(arguments["n"])


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
