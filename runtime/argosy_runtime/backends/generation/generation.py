"""What a request asks of an engine that gives tokens, checked against what the model can take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from argosy_runtime.errors import invalid, unsupported
from argosy_runtime.language import GenerationRequest, Sampling

MOST_LOGPROBS: Final = 20
"""The largest `logprobs`, which is OpenAI's `top_logprobs`."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a loaded model can take. `vocabulary` and `context`, the most tokens of a prompt and its answer, are 0 where
    they are not known. `ends` are the model's own end tokens, `defaults` what its requests leave out.
    """

    vocabulary: int
    context: int
    ends: frozenset[int]
    has_tokenizer: bool
    defaults: Mapping[str, Any] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True, slots=True)
class Generation:
    """One request. `ends` are the tokens that end it; `stop_ids` those of them that it names itself.

    `settings` are the engine's own, for each choice. `logprobs` is how many of the likeliest tokens to tell of, None
    for not even the chosen one.
    """

    request: GenerationRequest
    input_ids: list[int]
    max_new_tokens: int
    ends: frozenset[int]
    stop_ids: frozenset[int]
    logprobs: int | None
    settings: list[dict[str, Any]]

    @classmethod
    def of(
        cls,
        request: GenerationRequest,
        input_ids: list[int],
        max_new_tokens: int,
        ends: tuple[frozenset[int], frozenset[int]],
        logprobs: int | None,
        settings: list[dict[str, Any]],
    ) -> "Generation":
        """Return the generation that ends at the model's own tokens and at the request's, as `ends_of` has them."""
        own, stop_ids = ends
        return cls(request, input_ids, max_new_tokens, own | stop_ids, stop_ids - own, logprobs, settings)


def ends_of(sampling: Sampling, abilities: Abilities) -> tuple[frozenset[int], frozenset[int]]:
    """Return the tokens that end an answer: the model's own, unless they are to be ignored, and the request's."""
    own = frozenset[int]() if sampling.ignore_eos else abilities.ends
    return own, frozenset(sampling.stop_token_ids or ())


def logprob_count(about: str, request: GenerationRequest) -> int | None:
    """Return how many of the likeliest tokens to tell of next to the chosen one; None for not even that.

    Raises ServingError (INVALID_ARG) for more than there may be.
    """
    count = request.sampling.logprobs
    if count is None:
        return 0 if request.wants("cumulative_logprob") else None
    if not 0 <= count <= MOST_LOGPROBS:
        raise invalid(f"{about}'logprobs' is {count}, expected 0 to {MOST_LOGPROBS}")
    return count


def check_lacking(about: str, sampling: Sampling, lacking: Mapping[str, Any], way: str = "") -> None:
    """Raise ServingError (UNSUPPORTED) for a parameter that the engine lacks, of which the value asks for something.

    `lacking` has the values that ask for nothing; `way` says what would help.
    """
    for name, neutral in lacking.items():
        value = getattr(sampling, name)
        if value is not None and value != neutral:
            raise unsupported(f"{about}has no '{name}'{way}; leave it out")
