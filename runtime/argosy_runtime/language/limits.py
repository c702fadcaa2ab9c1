"""Whether a prompt and its answer fit a model: one rule for all backends, with one message."""

from collections.abc import Sequence

import msgspec

from argosy_runtime.errors import ServingError, invalid

from .sampling import Sampling


def truncated(ids: list[int], sampling: Sampling, context: int) -> list[int]:
    """Return the last tokens of a prompt, as many as the request asks for. `context`: 0 where it is not known."""
    limit = sampling.truncate_prompt_tokens
    if limit is None or (limit == -1 and not context):
        return ids
    if limit == -1:
        limit = context - max(1, min(sampling.most_tokens or 1, context - 1))
    return ids[-limit:]


def check_tokens(ids: Sequence[int], vocabulary: int) -> None:
    """Raise ServingError (INVALID_ARG) for a token that is not in the vocabulary, whose size is 0 if it is unknown."""
    for token in ids:
        if token < 0 or (vocabulary and token >= vocabulary):
            raise invalid(f"input id {token} is not in the vocabulary of {vocabulary} tokens")


def check_length(length: int, context: int) -> None:
    """Raise ServingError (INVALID_ARG) for a prompt without tokens, or that leaves no room for an answer."""
    if not length:
        raise invalid("the prompt is empty: it has no tokens")
    if length >= context:
        raise _too_long(f"the prompt has {length} tokens, and the answer at least 1", context)


def answer_length(sampling: Sampling, prompt: int, context: int, default: int | None = None) -> int:
    """Return the most new tokens for a prompt of so many. `default`: the model's own limit, for a request without one.

    The default of `max_tokens`, for a request without it, is shortened to what the context has room for. Raises
    ServingError (INVALID_ARG) where a request's own does not fit.
    """
    check_length(prompt, context)
    free, most = context - prompt, sampling.most_tokens
    if most is None:
        return free if default is None else min(free, default)
    if most > free and sampling.max_tokens is not msgspec.UNSET:
        raise _too_long(
            f"the prompt has {prompt} tokens, and 'max_tokens' asks for {most}; ask for at most {free}", context
        )
    return min(most, free)


def _too_long(problem: str, context: int) -> ServingError:
    return invalid(f"this model's maximum context length is {context} tokens, but {problem}")
