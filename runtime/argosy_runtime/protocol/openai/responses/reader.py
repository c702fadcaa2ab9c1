"""What answers need of the reader of a model's responses."""

from collections.abc import Sequence
from typing import Protocol

from argosy_runtime.language import Delta
from argosy_runtime.language.deltas import Position
from argosy_runtime.messages import InferResponse


class Reader(Protocol):
    """Reads the responses to one request, and adds up their counts of tokens."""

    num_input_tokens: int
    num_cached_tokens: int
    prompt_logprobs: "list[Position | None] | None"

    @property
    def total_output_tokens(self) -> int:
        """Tokens of all choices so far."""

    def read(self, response: InferResponse) -> list[Delta]:
        """Return the deltas of a response without an error. Raises ServingError where it cannot be read."""


def usage(readers: Sequence[Reader]) -> dict[str, object] | None:
    """Return the object `usage`: the tokens of all prompts, and those of all choices. None if nothing counts them."""
    prompts = sum([reader.num_input_tokens for reader in readers])
    completions = sum([reader.total_output_tokens for reader in readers])
    if not (prompts or completions):
        return None
    return {
        "prompt_tokens": prompts,
        "completion_tokens": completions,
        "total_tokens": prompts + completions,
        "prompt_tokens_details": {"cached_tokens": sum([reader.num_cached_tokens for reader in readers])},
    }
