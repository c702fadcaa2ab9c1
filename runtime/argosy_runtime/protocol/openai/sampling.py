"""The parameters of sampling that an engine takes, from the fields of a request."""

from typing import Any, Final

import msgspec

from .requests.fields import GenerationFields, JsonSchemaFormat, TextFormat

# Fields with the same name and meaning as the parameter.
_SAME: Final = (
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "seed",
    "stop",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "min_tokens",
    "ignore_eos",
    "stop_token_ids",
    "include_stop_str_in_output",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "truncate_prompt_tokens",
    "allowed_token_ids",
    "bad_words",
    "priority",
    "cache_salt",
)
# The smallest nucleus: the most likely token alone. Engines take no 0.
_LEAST_TOP_P: Final = 1e-6


def sampling_parameters(
    request: GenerationFields,
    max_tokens: int | msgspec.UnsetType | None,
    logprobs: int | None,
    prompt_logprobs: int | None = None,
) -> bytes:
    """Return the JSON object for the input sampling_parameters.

    `max_tokens` None: as many as the context has room for; UNSET: the default of `Sampling`. `logprobs`: alternatives
    for each token, None for no probabilities.
    """
    parameters: dict[str, Any] = {} if max_tokens is msgspec.UNSET else {"max_tokens": max_tokens}
    for name in _SAME:
        value = getattr(request, name)
        if value is not None:
            parameters[name] = value
    if request.n is not None and request.n > 1:
        parameters["n"] = request.n
    if request.top_p == 0:
        parameters["top_p"] = _LEAST_TOP_P
    if logprobs is not None:
        parameters["logprobs"] = logprobs
    if prompt_logprobs is not None:
        parameters["prompt_logprobs"] = prompt_logprobs
    constraint = _structured_outputs(request)
    if constraint is not None:
        parameters["structured_outputs"] = constraint
    return msgspec.json.encode(parameters)


def _structured_outputs(request: GenerationFields) -> dict[str, Any] | None:
    """Return the constraint of the output by vLLM's names, None for none."""
    if request.structured_outputs is not None:
        outputs: dict[str, Any] = msgspec.to_builtins(request.structured_outputs)
        return outputs
    constraint = request.response_format
    if constraint is None or isinstance(constraint, TextFormat):
        return None
    if isinstance(constraint, JsonSchemaFormat) and constraint.json_schema.schema is not None:
        return {"json": constraint.json_schema.schema}
    return {"json_object": True}
