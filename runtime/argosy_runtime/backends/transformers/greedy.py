"""Greedy requests in a batch that samples.

The library's continuous batching draws each token at random once one request may sample. A greedy request is then a
choice among the top 1, and the library's top-k keeps every token that ties with it. Here exactly one is left.
"""

from typing import Any

import torch
from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingTopKLogitsWarper


class ArgmaxTopK(ContinuousBatchingTopKLogitsWarper):  # type: ignore[misc]  # the library has no types for it
    """The library's top-k for each request, where a top-k of 1 is argmax: the first of the likeliest tokens."""

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Return the scores, [requests, vocabulary], of the tokens that stay; the rest are the filter value."""
        top: torch.Tensor = super().__call__(scores, tensor_arg)
        is_greedy = (tensor_arg[: scores.size(0)] == 1).unsqueeze(-1)
        tokens = torch.arange(scores.size(-1), device=scores.device)
        is_first = tokens == scores.argmax(dim=-1, keepdim=True)
        return top.masked_fill(is_greedy & ~is_first, self.filter_value)


def make_top_one_argmax(manager: Any) -> None:
    """Put `ArgmaxTopK` in place of the top-k of a `ContinuousBatchingManager` that has not been warmed up."""
    processors = manager.logit_processor.logits_processor
    for index, processor in enumerate(processors):
        if isinstance(processor, ContinuousBatchingTopKLogitsWarper):
            processors[index] = ArgmaxTopK(processor)
