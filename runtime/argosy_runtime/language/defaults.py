"""What a request leaves out: one rule for all backends, so that a request to any variant of a model means the same.

The model's own defaults are those of its `generation_config.json`, as for vLLM's server; without them a request has a
temperature of 1 and all tokens, as OpenAI's API says.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from .sampling import Sampling, from_mapping

FIELDS: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
)
"""Parameters whose defaults a model may have. `max_tokens` is one more."""
MAX_NEW_TOKENS: Final = "max_new_tokens"
DECLARED: Final = {**{name: name for name in FIELDS}, MAX_NEW_TOKENS: "max_tokens"}
"""What a model's file calls them, and what `Sampling` does."""
TEMPERATURE: Final = 1.0


def declared_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults that the values of a `generation_config.json` are, by the names of `Sampling`.

    Raises ServingError (INVALID_ARG) for a value out of its range.
    """
    declared = {name: values[key] for key, name in DECLARED.items() if values.get(key) is not None}
    checked = from_mapping(declared)
    return {name: getattr(checked, name) for name in declared}


def with_defaults(sampling: Sampling, defaults: Mapping[str, Any]) -> Sampling:
    """Return the parameters of a request with what it leaves out, but for `max_tokens` (`limits.answer_length`)."""
    missing = {name: defaults[name] for name in FIELDS if name in defaults and getattr(sampling, name) is None}
    if sampling.temperature is None:
        missing.setdefault("temperature", TEMPERATURE)
    return msgspec.structs.replace(sampling, **missing) if missing else sampling
