"""Steps between a request's logits and its next token that the library's continuous batching lacks.

Each takes one 32-bit argument for each request, which the library keeps on the device with those of its own steps, so
that captured graphs and batches prepared ahead of the results work with them. `state.position_offset` is the number of
tokens of a request so far, also after the library has moved it out of the cache and back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch
from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor

from .seeds import GREEDY, number_at

_LOW_32: Final = 0xFFFFFFFF
_BELOW_ONE: Final = 1 - 2**-24


class Noise(ContinuousBatchingLogitsProcessor):  # type: ignore[misc]  # the library has no types for it
    """Random numbers with which the largest score is a sample (the Gumbel-max method).

    The numbers follow from the request's key, the token's position and the token alone. So requests with one key get
    the same tokens whatever else is in the batch, if their logits are the same.
    """

    supported_kwargs: ClassVar = {"key": int}
    ignored_kwargs = ()

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Set the arguments of rows without a request."""
        int32_tensor.fill_(GREEDY)

    def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> torch.Tensor:
        """Return a number for each request and position; 0 for greedy ones."""
        keys = [
            (request.state.logit_processor_kwargs.get("key", GREEDY), request.state)
            for request in requests_with_new_token
        ]
        return torch.tensor(
            [number_at(key, state.position_offset) if key != GREEDY else 0 for key, state in keys], dtype=torch.int32
        )

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Return the scores, [requests, vocabulary], with Gumbel noise in the rows that sample."""
        numbers = tensor_arg[: scores.size(0)].long().unsqueeze(-1)
        tokens = torch.arange(scores.size(-1), device=scores.device)
        bits = _mixed((numbers ^ (tokens * 0x9E3779B1)) & _LOW_32)
        uniform = ((bits.float() + 0.5) * 2.0**-32).clamp(max=_BELOW_ONE)
        gumbel = -torch.log(-torch.log1p(-uniform))
        return scores + torch.where(numbers != 0, gumbel, 0.0)


def _mixed(bits: torch.Tensor) -> torch.Tensor:
    """Return 32-bit numbers of which each bit depends on all bits of the given ones (MurmurHash3's finalizer)."""
    for factor, shift in ((0x85EBCA6B, 13), (0xC2B2AE35, 16)):
        bits = bits ^ (bits >> 16) if shift == 13 else bits
        bits = (bits * factor) & _LOW_32
        bits = bits ^ (bits >> shift)
    return bits


class LaterEnd(ContinuousBatchingLogitsProcessor):  # type: ignore[misc]  # the library has no types for it
    """No token that ends a request before the sequence has `ends_from` tokens.

    Those are the model's own ones, or the request's one `end_id` if it has one.
    """

    supported_kwargs: ClassVar = {"ends_from": int, "end_id": int}
    ignored_kwargs = ()
    OWN: Final = -1

    def __init__(self, own: Iterable[int], vocabulary: int, device: torch.device) -> None:
        self._ends = torch.zeros(vocabulary, dtype=torch.bool, device=device)
        self._ends[[token for token in own if token < vocabulary]] = True

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Set the arguments of rows without a request."""
        int32_tensor.fill_(0)

    def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> torch.Tensor:
        """Return -1 for each request that may not end at the model's own tokens, its end id + 1, or 0 if it may end."""
        return torch.tensor([self._argument(request.state) for request in requests_with_new_token], dtype=torch.int32)

    def _argument(self, state: Any) -> int:
        settings = state.logit_processor_kwargs
        if state.position_offset >= settings.get("ends_from", 0):
            return 0
        end_id = settings.get("end_id", self.OWN)
        return self.OWN if end_id == self.OWN else end_id + 1

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Return the scores, [requests, vocabulary], with those tokens impossible."""
        banned = tensor_arg[: scores.size(0)].unsqueeze(-1)
        tokens = torch.arange(scores.size(-1), device=scores.device)
        return scores.masked_fill((banned == tokens + 1) | ((banned == self.OWN) & self._ends), -torch.inf)


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """The log probability and rank (from 1) of a token, and the likeliest tokens with theirs, from the model's own
    distribution: before temperature, top-k and top-p.
    """

    logprob: float
    rank: int
    likeliest: tuple[tuple[int, float], ...]


class Logprobs(ContinuousBatchingLogitsProcessor):  # type: ignore[misc]  # the library has no types for it
    """The model's own distribution of the requests that ask for it; for batches computed one after the other."""

    supported_kwargs: ClassVar = {"logprobs": int}
    ignored_kwargs = ()
    NONE: Final = -1

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []
        self._distributions = torch.empty(0)
        self._of_rows: dict[int, TokenLogprobs] = {}

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Set the arguments of rows without a request."""
        int32_tensor.fill_(self.NONE)

    def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> torch.Tensor:
        """Note the rows of the next batch whose distribution is needed."""
        counts = [
            request.state.logit_processor_kwargs.get("logprobs", self.NONE) for request in requests_with_new_token
        ]
        self._rows = [(row, count) for row, count in enumerate(counts) if count != self.NONE]
        return torch.tensor(counts, dtype=torch.int32)

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Keep the distributions; the scores stay as they are."""
        if self._rows:
            self._distributions = scores[[row for row, _ in self._rows]].log_softmax(dim=-1)
        return scores

    def sampled(self, tokens: torch.Tensor) -> None:
        """Note what there is to tell of the tokens, [requests], that were chosen."""
        self._of_rows = {
            row: _token_logprobs(distribution, int(tokens[row]), count)
            for (row, count), distribution in zip(self._rows, self._distributions, strict=False)
        }

    def of_batch(self, requests: int) -> list[TokenLogprobs | None]:
        """Return what there is to tell of each row of the last batch."""
        return [self._of_rows.get(row) for row in range(requests)]


def _token_logprobs(distribution: torch.Tensor, token: int, count: int) -> TokenLogprobs:
    logprob = distribution[token]
    values, tokens = distribution.topk(min(count, distribution.size(-1)))
    likeliest = tuple(zip(tokens.tolist(), values.tolist(), strict=True))
    return TokenLogprobs(float(logprob), int((distribution > logprob).sum()) + 1, likeliest)
